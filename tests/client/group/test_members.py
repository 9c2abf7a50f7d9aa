"""Groups of Ottla's consumers with a running broker."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.client.running import run
from tests.clients.making import create_topic

from ottla.client.client import Client
from ottla.client.errors import BrokerError, ClientError, CommitFailed
from ottla.client.group.interface import RebalanceListener
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition

from .playing import PATIENCE_S, SESSION_MS, broker, crew

EACH_ASSIGNOR = pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])


class Diary:
    """The calls of a rebalance listener, in order."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, frozenset[TopicPartition]]] = []

    def listener(self) -> RebalanceListener:
        async def on_revoked(partitions: frozenset[TopicPartition]) -> None:
            await asyncio.sleep(0)
            self.entries.append(("revoked", partitions))

        return RebalanceListener(
            on_assigned=lambda partitions: self.entries.append(("assigned", partitions)),
            on_revoked=on_revoked,
            on_lost=lambda partitions: self.entries.append(("lost", partitions)),
        )

    def told(self) -> list[tuple[str, int]]:
        return [(what, len(partitions)) for what, partitions in self.entries]


@EACH_ASSIGNOR
@pytest.mark.parametrize("members", [2, 3])
def test_members_share_the_partitions_and_get_each_record_once(assignor: str, members: int) -> None:
    async def scenario() -> None:
        async with crew(assignors=(assignor,)) as group:
            for _ in range(members):
                await group.hire()
            await group.settle()
            await group.produce(range(300))
            await group.receive(300)
            for member in list(group.members):
                await group.dismiss(member)
            assert set(group.received.values()) == {1}
            assert await group.committed() == dict.fromkeys(group.partitions, 50)

    run(scenario())


@EACH_ASSIGNOR
def test_no_record_is_skipped_while_members_join_leave_and_crash(assignor: str) -> None:
    async def scenario() -> None:
        async with crew(assignors=(assignor,), session_timeout_ms=SESSION_MS) as group:
            first = await group.hire()
            await group.produce(range(60))
            second = await group.hire()
            await group.produce(range(60, 120))
            await group.settle()
            await group.hire()
            await group.produce(range(120, 180))
            await group.dismiss(first)
            await group.produce(range(180, 240))
            await second.vanish()
            await group.produce(range(240, 300))
            await group.receive(300)
            await group.settle()
            history = await group.history()
            assert all(offsets == sorted(offsets) for offsets in history.values())
            assert sum(map(len, history.values())) >= len(group.partitions)

    run(scenario())


def test_a_cooperative_member_keeps_reading_retained_partitions_when_another_joins() -> None:
    async def scenario() -> None:
        diary = Diary()
        async with crew(assignors=("cooperative-sticky",)) as group:
            first = await group.hire(diary.listener())
            await group.settle()
            await group.hire()
            await group.settle()
            assert diary.told() == [("assigned", 6), ("revoked", 3)]
            assert first.assignment == diary.entries[0][1] - diary.entries[1][1]

    run(scenario())


def test_an_eager_member_revokes_everything_when_another_joins() -> None:
    async def scenario() -> None:
        diary = Diary()
        async with crew(assignors=("range",)) as group:
            await group.hire(diary.listener())
            await group.settle()
            await group.hire()
            await group.settle()
            assert diary.told() == [("assigned", 6), ("revoked", 6), ("assigned", 3)]

    run(scenario())


def test_no_partition_is_revoked_while_the_application_processes_records() -> None:
    async def scenario() -> None:
        diary = Diary()
        async with crew(assignors=("range",), partitions=2) as group:
            slow = await group.hire(diary.listener())
            await group.settle()
            slow.may_go_on.clear()
            await group.produce(range(10))
            await group.receive(1)
            second = await group.hire()
            await group.until(lambda: slow.member._reason == "the group is rebalancing", "news of the rebalance")
            assert diary.told() == [("assigned", 2)]
            assert second.assignment == frozenset()
            slow.may_go_on.set()
            await group.settle()
            await group.receive(10)
            assert set(group.received.values()) == {1}

    run(scenario())


def test_a_member_beyond_max_poll_interval_loses_its_partitions_and_rejoins() -> None:
    async def scenario() -> None:
        diary = Diary()
        async with crew(assignors=("range",), partitions=2, auto_commit=False) as group:
            slow = await group.hire(diary.listener(), max_poll_interval_ms=300)
            await group.settle()
            slow.may_go_on.clear()
            await group.produce(range(10))
            await group.receive(1)
            await group.hire()
            await group.until(lambda: len(group.members[1].assignment) == 2, "the other member has everything")
            assert diary.told() == [("assigned", 2), ("lost", 2)]
            with pytest.raises(CommitFailed, match="max_poll_interval_ms"):
                await slow.consumer.commit(dict.fromkeys(group.partitions, 5))
            slow.may_go_on.set()
            await group.receive(10)
            await group.settle()

    run(scenario())


def test_a_commit_for_another_members_partition_is_refused() -> None:
    async def scenario() -> None:
        async with crew(partitions=2, auto_commit=False) as group:
            first, second = await group.hire(), await group.hire()
            await group.settle()
            [others] = second.assignment
            with pytest.raises(CommitFailed, match=f"{others}, which this member does not own"):
                await first.consumer.commit({others: 5})
            await second.consumer.commit({others: 3})
            assert await group.committed() == {others: 3}

    run(scenario())


def test_an_asynchronous_commit_arrives() -> None:
    async def scenario() -> None:
        async with crew(partitions=1, auto_commit=False) as group:
            member = await group.hire()
            await group.produce(range(10))
            await group.receive(10)
            member.consumer.commit_soon({group.partitions[0]: 4})
            member.consumer.commit_soon()
            await group.dismiss(member)
            assert await group.committed() == {group.partitions[0]: 10}

    run(scenario())


def test_automatic_commits_while_reading_cover_processed_records() -> None:
    async def scenario() -> None:
        async with crew(partitions=1) as group:
            member = await group.hire()
            await group.produce(range(10))
            await group.receive(10)
            while await group.committed() != {group.partitions[0]: 10}:
                pass
            member.may_go_on.clear()
            await group.produce(range(10, 20))
            await group.receive(11)
            await member.member._commits.commit_positions(group.partitions)
            assert await group.committed() == {group.partitions[0]: 10}
            member.may_go_on.set()

    run(scenario())


def test_a_new_topic_that_matches_a_pattern_is_read() -> None:
    async def scenario() -> None:
        with broker() as running:
            servers = running.bootstrap_servers
            create_topic(servers, "orders-eu")
            async with Client(servers, metadata_max_age_ms=100) as client:
                options: dict[str, Any] = {"group": "g", "auto_offset_reset": "earliest", "heartbeat_interval_ms": 50}
                consumer, producer = client.consumer(**options), client.producer()
                await consumer.subscribe(pattern="orders-.*")
                async with consumer, producer, asyncio.timeout(PATIENCE_S):
                    await producer.send("orders-eu", value=b"1")
                    assert [record.value for record in await consumer.poll()] == [b"1"]
                    create_topic(servers, "other")
                    create_topic(servers, "orders-us", 2)
                    await producer.send("orders-us", value=b"2")
                    assert [record.topic for record in await consumer.poll()] == ["orders-us"]
                    assert {at.topic for at in consumer.assignment} == {"orders-eu", "orders-us"}

    run(scenario())


def test_another_subscription_brings_other_partitions() -> None:
    async def scenario() -> None:
        async with crew(partitions=2) as group:
            member = await group.hire()
            await group.settle()
            create_topic(group.servers, "other", 3)
            await member.consumer.subscribe("other")
            wanted = {TopicPartition("other", index) for index in range(3)}
            await group.until(lambda: member.assignment == wanted, "the other topic")

    run(scenario())


def test_partitions_added_to_a_topic_are_assigned() -> None:
    async def scenario() -> None:
        async with crew(partitions=2) as group:
            await group.hire()
            await group.hire()
            await group.settle()
            async with Client(group.servers) as client:
                await client.admin.create_partitions(group.topic, 4)
            group.partitions += [TopicPartition(group.topic, index) for index in (2, 3)]
            await group.settle()

    run(scenario())


def test_a_listener_may_seek_before_anything_is_delivered() -> None:
    async def scenario() -> None:
        async with crew(partitions=1) as group:
            await group.produce(range(10))
            async with Client(group.servers) as client, client.consumer(group="seeks") as consumer:
                listener = RebalanceListener(on_assigned=lambda _: consumer.seek(group.partitions[0], 7))
                await consumer.subscribe(group.topic, listener=listener)
                async with asyncio.timeout(PATIENCE_S):
                    assert [record.offset for record in await consumer.poll()] == [7, 8, 9]

    run(scenario())


def test_a_listener_may_commit_before_its_partitions_are_revoked() -> None:
    async def scenario() -> None:
        async with crew(partitions=2, auto_commit=False) as group:
            first = await group.hire(
                RebalanceListener(on_revoked=lambda partitions: first.consumer.commit(dict.fromkeys(partitions, 9)))
            )
            await group.settle()
            await group.hire()
            await group.settle()
            assert await group.committed() == dict.fromkeys(group.partitions, 9)

    run(scenario())


def test_a_failing_listener_ends_the_membership_and_its_error_is_raised() -> None:
    async def scenario() -> None:
        def fail(_: object) -> None:
            raise KeyError("no such shelf")

        async with crew(partitions=1) as group:
            member = await group.hire(RebalanceListener(on_assigned=fail))
            with pytest.raises(ClientError, match="the rebalance listener failed: KeyError"):
                await group.settle()
            with pytest.raises(ClientError, match="the rebalance listener failed: KeyError"):
                await member.consumer.poll()

    run(scenario())


def test_a_second_member_with_the_same_instance_id_fences_the_first() -> None:
    async def scenario() -> None:
        async with crew(partitions=2) as group:
            old = await group.hire(group_instance_id="same")
            await group.settle()
            group.members.remove(old)
            await group.hire(group_instance_id="same")
            await group.settle()
            async with asyncio.timeout(PATIENCE_S):
                while old.error is None:
                    async with group.changed:
                        await group.changed.wait()
            assert isinstance(old.error, BrokerError)
            assert old.error.code is ErrorCode.FENCED_INSTANCE_ID
            await old.stop()

    run(scenario())


def test_a_returning_static_member_keeps_its_partitions_without_a_rebalance() -> None:
    async def scenario() -> None:
        diary = Diary()
        async with crew() as group:
            static = await group.hire(group_instance_id="static")
            await group.hire(diary.listener())
            await group.settle()
            before, told = static.assignment, diary.told()
            await group.dismiss(static)
            static = await group.hire(group_instance_id="static")
            await group.settle()
            assert static.assignment == before
            assert diary.told() == told

    run(scenario())


def test_members_without_a_common_assignor_do_not_form_a_group() -> None:
    async def scenario() -> None:
        async with crew() as group:
            await group.hire(assignors=("range",))
            await group.settle()
            await group.hire(assignors=("cooperative-sticky",))
            with pytest.raises(BrokerError, match="INCONSISTENT_GROUP_PROTOCOL"):
                await group.settle()

    run(scenario())


def test_a_member_can_be_closed_while_it_waits_for_the_others() -> None:
    async def scenario() -> None:
        with broker(initial_rebalance_delay_ms=60_000) as running:
            create_topic(running.bootstrap_servers, "t")
            async with Client(running.bootstrap_servers) as client:
                consumer = client.consumer("t", group="g")
                async with asyncio.timeout(5):
                    await consumer.poll(timeout_ms=200)
                    await consumer.close()

    run(scenario())
