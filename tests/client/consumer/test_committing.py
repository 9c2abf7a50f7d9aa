"""Which records are committed, and where the next consumer starts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.broker.making import create_topic, produce
from tests.client.running import run

from ottla.client.errors import ClientError
from ottla.client.group.interface import Committed
from ottla.core.ids import TopicPartition

from .reading import consuming, read, values

if TYPE_CHECKING:
    from tests.broker.raw_client import RawClient


@pytest.fixture
def at(raw: RawClient, name: str) -> TopicPartition:
    """The only partition of a topic with ten messages."""
    create_topic(raw, name)
    produce(raw, name, *(b"%d" % number for number in range(10)))
    return TopicPartition(name, 0)


class Crash(Exception):
    """An error of the application."""


async def next_offset(servers: str, at: TopicPartition, *, is_assigned: bool) -> int:
    """The offset where another consumer of the group starts."""
    async with consuming(servers, group=at.topic) as consumer:
        if is_assigned:
            await consumer.assign([at])
        else:
            await consumer.subscribe(at.topic)
        [record] = await read(consumer, 1)
        offset: int = record.offset
        return offset


@pytest.mark.parametrize("is_assigned", [True, False], ids=["assigned", "subscribed"])
class TestAutomatically:
    def test_closing_commits_all_returned_records(self, servers: str, at: TopicPartition, is_assigned: bool) -> None:
        async def scenario() -> int:
            async with consuming(servers, group=at.topic) as consumer:
                await (consumer.assign([at]) if is_assigned else consumer.subscribe(at.topic))
                async for record in consumer:
                    if record.offset == 5:
                        break
            return await next_offset(servers, at, is_assigned=is_assigned)

        assert run(scenario()) == 6

    def test_the_message_being_processed_at_a_failure_is_not_committed(
        self, servers: str, at: TopicPartition, is_assigned: bool
    ) -> None:
        async def fail_at_the_sixth() -> None:
            async with consuming(servers, group=at.topic) as consumer:
                await (consumer.assign([at]) if is_assigned else consumer.subscribe(at.topic))
                async for record in consumer:
                    if record.offset == 5:
                        raise Crash

        async def scenario() -> int:
            with pytest.raises(Crash):
                await fail_at_the_sixth()
            return await next_offset(servers, at, is_assigned=is_assigned)

        assert run(scenario()) == 5

    def test_polled_messages_being_processed_at_a_failure_are_not_committed(
        self, servers: str, at: TopicPartition, is_assigned: bool
    ) -> None:
        async def fail_at_the_second_poll() -> None:
            async with consuming(servers, group=at.topic) as consumer:
                await (consumer.assign([at]) if is_assigned else consumer.subscribe(at.topic))
                await read(consumer, 3)
                await read(consumer, 4)
                raise Crash

        async def scenario() -> int:
            with pytest.raises(Crash):
                await fail_at_the_second_poll()
            return await next_offset(servers, at, is_assigned=is_assigned)

        assert run(scenario()) == 3

    def test_closing_commits_returned_columns(
        self, servers: str, at: TopicPartition, is_assigned: bool, raw: RawClient
    ) -> None:
        async def scenario() -> int:
            async with consuming(servers, group=at.topic) as consumer:
                await (consumer.assign([at]) if is_assigned else consumer.subscribe(at.topic))
                table = await consumer.fetch_arrow()
                assert table.num_rows == 10
            await asyncio.to_thread(produce, raw, at.topic, b"10")
            return await next_offset(servers, at, is_assigned=is_assigned)

        assert run(scenario()) == 10


@pytest.mark.parametrize("is_assigned", [True, False], ids=["assigned", "subscribed"])
def test_a_manual_commit_covers_all_returned_records(servers: str, at: TopicPartition, is_assigned: bool) -> None:
    async def scenario() -> None:
        async with consuming(servers, group=at.topic, auto_commit=False) as consumer:
            await (consumer.assign([at]) if is_assigned else consumer.subscribe(at.topic))
            await read(consumer, 4)
            assert await consumer.committed() == {}
            await consumer.commit()
            assert await consumer.committed(at) == {at: Committed(4)}
            await consumer.commit({at: 2})
            assert await consumer.committed() == {at: Committed(2)}
            await consumer.commit({at: Committed(3, metadata="note")})
            assert await consumer.committed() == {at: Committed(3, metadata="note")}
            await read(consumer, 6)
        assert await next_offset(servers, at, is_assigned=is_assigned) == 3

    run(scenario())


def test_a_commit_can_be_asynchronous(servers: str, at: TopicPartition) -> None:
    async def scenario() -> None:
        async with consuming(servers, at.topic, group=at.topic, auto_commit=False) as consumer:
            await read(consumer, 4)
            consumer.commit_soon()
            await read(consumer, 4)
        assert await next_offset(servers, at, is_assigned=True) == 4

    run(scenario())


def test_a_failed_asynchronous_commit_is_raised_by_the_next_call(servers: str, at: TopicPartition) -> None:
    async def scenario() -> None:
        async with consuming(servers, at.topic, group=at.topic) as consumer:
            await read(consumer, 4)
            consumer.commit_soon({TopicPartition("not-mine", 0): 1})
            with pytest.raises(ClientError, match="not-mine-0"):
                await read(consumer, 100)

    run(scenario())


def test_commits_need_a_group(servers: str, at: TopicPartition) -> None:
    async def scenario() -> None:
        async with consuming(servers, at.topic) as consumer:
            with pytest.raises(ClientError, match="commit needs a started consumer"):
                await consumer.commit()
            with pytest.raises(ClientError, match="commit needs a started consumer"):
                await consumer.committed()

    run(scenario())


def test_a_group_starts_by_policy_and_continues_at_its_offset(servers: str, at: TopicPartition) -> None:
    async def scenario(count: int) -> list[bytes]:
        async with consuming(servers, at.topic, group=at.topic) as consumer:
            return await values(consumer, count)

    assert run(scenario(3)) == [b"0", b"1", b"2"]
    assert run(scenario(2)) == [b"3", b"4"]
