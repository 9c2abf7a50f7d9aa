"""Three brokers in one event loop, with leaders from a catalog in memory."""

from __future__ import annotations

import asyncio
from functools import wraps
from typing import TYPE_CHECKING, Any

import pytest

from ottla.broker.topology import ClusterTopology
from ottla.core.errors import ErrorCode
from ottla.records.encode import BatchBuilder
from ottla.records.reader import RecordReader
from ottla.storage.config import LogConfig
from ottla.storage.folder.data_dir import CLEAN_SHUTDOWN
from ottla.storage.rewrites.rewriting import Rewrite, put_in_place
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)

from .memory import Brokers, brokers_of, until

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from ottla.storage.segment_files.scan import FoundBatch

ALL, LEADER = -1, 1


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def batch(*values: bytes) -> bytes:
    builder = BatchBuilder()
    for value in values:
        builder.append(1_700_000_000_000, None, value)
    return bytes(builder.build())


async def produce(
    brokers: Brokers, node: int, *values: bytes, acks: int = ALL, timeout_ms: int = 10_000
) -> PartitionProduceResponse:
    data = PartitionProduceData(index=0, records=batch(*values))
    topic = TopicProduceData(name="t", partition_data=(data,))
    answer = await brokers.ask(node, ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=(topic,)), 12)
    return answer.responses[0].partition_responses[0]


async def fetch(brokers: Brokers, node: int, offset: int = 0, epoch: int = -1, rack: str = "") -> PartitionData:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, current_leader_epoch=epoch)
    topic = FetchTopic(topic="t", partitions=(wanted,))
    request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=(topic,), rack_id=rack)
    return (await brokers.ask(node, request, 12)).responses[0].partitions[0]


async def values_on(brokers: Brokers, node: int, rack: str = "") -> list[bytes | None]:
    data = await fetch(brokers, node, rack=rack)
    assert data.error_code == ErrorCode.NONE, data
    return [record.value for record in RecordReader(bytes(data.records or b""))]


class WithoutFirstBatch(Rewrite):
    def _kept(self, batch: FoundBatch) -> bytes | bytearray | memoryview | None:
        return batch.data if batch.header.base_offset else None


def ends(brokers: Brokers) -> list[int]:
    return [brokers.log(node).next_offset for node in brokers.running]


def bytes_of(brokers: Brokers, node: int) -> bytes:
    log = brokers.log(node)
    return bytes(log.read(log.start_offset, 1 << 20))


@in_loop
async def test_acknowledged_records_are_on_every_in_sync_replica(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1)
        for number in range(10):
            answer = await produce(brokers, 1, b"v%d" % number)
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, number)

            assert ends(brokers) == [number + 1] * 3
        assert bytes_of(brokers, 1) == bytes_of(brokers, 2) == bytes_of(brokers, 3)


@in_loop
async def test_with_flush_ack_acknowledged_records_are_synced_on_every_replica(tmp_path: Path) -> None:
    async with brokers_of(tmp_path, log=LogConfig(flush="ack")) as brokers:
        brokers.place(leader=1)
        assert (await produce(brokers, 1, b"v")).error_code == ErrorCode.NONE

        assert [brokers.log(node).recovery_point for node in (1, 2, 3)] == [1, 1, 1]


@in_loop
async def test_consumers_do_not_see_unreplicated_records(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1)
        await produce(brokers, 1, b"first")
        brokers.catalog.nodes[2].is_deaf = True
        await brokers[2].replication.stop()  # type: ignore[union-attr]
        assert (await produce(brokers, 1, b"second", acks=LEADER)).error_code == ErrorCode.NONE
        await until(lambda: brokers.log(3).next_offset == 2)

        assert await values_on(brokers, 1) == [b"first"]


@in_loop
async def test_a_follower_names_the_leader(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=3)
        await produce(brokers, 3, b"v")

        refused = await produce(brokers, 1, b"v")
        assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (refused.current_leader.leader_id, refused.current_leader.leader_epoch) == (3, 0)
        data = await fetch(brokers, 2)
        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (3, 0)


@in_loop
async def test_another_leader_epoch_is_refused(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1)
        brokers.catalog.elect(brokers.key, 2)
        await produce_until_taken(brokers, 2, b"v")

        assert (await fetch(brokers, 2, epoch=0)).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (await fetch(brokers, 2, epoch=2)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert (await fetch(brokers, 2, epoch=1)).error_code == ErrorCode.NONE


async def produce_until_taken(brokers: Brokers, node: int, *values: bytes, acks: int = ALL) -> None:
    async with asyncio.timeout(20):
        while (await produce(brokers, node, *values, acks=acks)).error_code:  # noqa: ASYNC110
            await asyncio.sleep(0)


@in_loop
async def test_a_stopped_follower_leaves_the_isr_and_waiting_produces_are_acknowledged(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1, min_insync=2)
        await produce(brokers, 1, b"first")
        await brokers.kill(3)

        assert (await produce(brokers, 1, b"second")).error_code == ErrorCode.NONE
        assert brokers.state().isr == (1, 2)


@in_loop
async def test_with_too_few_in_sync_replicas_nothing_is_accepted(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1, min_insync=2)
        await brokers.kill(2)
        await brokers.kill(3)
        brokers.catalog.change(brokers.key, isr=(1,))
        replica = brokers.replica(1)
        await until(lambda: replica.leading is not None and replica.leading.isr == {1})

        assert (await produce(brokers, 1, b"v")).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert brokers.log(1).next_offset == 0


@in_loop
async def test_a_returning_replica_catches_up_and_rejoins(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1)
        await produce(brokers, 1, b"first")
        await brokers.kill(3)
        await produce(brokers, 1, b"second")

        await brokers.start(3)
        await until(lambda: 3 in brokers.state().isr)

        assert bytes_of(brokers, 3) == bytes_of(brokers, 1)


@in_loop
async def test_uncommitted_records_of_a_former_leader_are_truncated(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1, isr=(1, 2, 3))
        await produce(brokers, 1, b"committed")
        for node in (2, 3):
            await brokers[node].replication.stop()  # type: ignore[union-attr]
        await produce(brokers, 1, b"lost", b"lost", acks=LEADER)
        assert ends(brokers) == [3, 1, 1]
        await brokers.kill(1)
        await brokers.kill(2)
        await brokers.start(2)
        brokers.catalog.elect(brokers.key, 2, isr=(2,))
        await produce_until_taken(brokers, 2, b"other", acks=LEADER)

        await brokers.start(1)
        await until(lambda: 1 in brokers.state().isr)

        assert bytes_of(brokers, 1) == bytes_of(brokers, 2)
        assert await values_on(brokers, 2) == [b"committed", b"other"]
        assert brokers.log(1).epochs.entries == [(0, 0), (1, 1)]


@in_loop
async def test_a_replica_that_lost_its_disk_is_rebuilt(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1)
        await produce(brokers, 1, b"first", b"second")
        brokers.log(1).raise_start(1)
        await until(lambda: brokers.log(3).start_offset == 1)
        await brokers.kill(3)
        (tmp_path / "3").rename(tmp_path / "lost")
        brokers.catalog.change(brokers.key, isr=(1, 2))

        await brokers.start(3)
        await until(lambda: 3 in brokers.state().isr)

        assert (brokers.log(3).start_offset, brokers.log(3).next_offset) == (1, 2)
        assert bytes_of(brokers, 3) == bytes_of(brokers, 1)


@in_loop
async def test_a_replica_behind_the_leaders_log_start_restarts_there(tmp_path: Path) -> None:
    async with brokers_of(tmp_path, log=LogConfig(flush="os", segment_bytes=1024)) as brokers:
        brokers.place(leader=1)
        await produce(brokers, 1, b"first")
        await brokers.kill(3)
        for _ in range(5):
            await produce(brokers, 1, bytes(600))
        brokers.log(1).raise_start(4)

        await brokers.start(3)
        await until(lambda: 3 in brokers.state().isr)

        assert (brokers.log(3).start_offset, brokers.log(3).next_offset) == (4, 6)
        assert bytes_of(brokers, 3) == bytes(brokers.log(1).read(4, 1 << 20))


@in_loop
async def test_a_replica_behind_removed_tombstones_copies_the_whole_log(tmp_path: Path) -> None:
    async with brokers_of(tmp_path, log=LogConfig(flush="os", segment_bytes=1024)) as brokers:
        brokers.place(leader=1)
        await produce(brokers, 1, b"deleted later")
        await brokers.kill(3)
        for _ in range(3):
            await produce(brokers, 1, bytes(600))
        # As if this leader had compacted its log while it believed that all replicas were in sync.
        log = brokers.log(1)
        log.removed_tombstones.raise_to(3)
        compacted = WithoutFirstBatch([log.segments[0]], None)
        compacted.run()
        assert put_in_place(log, compacted)

        await brokers.start(3)
        await until(lambda: 3 in brokers.state().isr)

        assert bytes_of(brokers, 3) == bytes_of(brokers, 1)
        assert brokers.log(3).removed_tombstones.until == 3


@in_loop
async def test_a_leader_that_lost_its_session_acknowledges_nothing(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1)
        await produce(brokers, 1, b"first")
        for node in (2, 3):
            await brokers[node].replication.stop()  # type: ignore[union-attr]
        waiting = asyncio.ensure_future(produce(brokers, 1, b"second"))
        await until(lambda: brokers.log(1).next_offset == 2)

        brokers.catalog.nodes[1].lose_session()

        assert (await waiting).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (await produce(brokers, 1, b"third", acks=LEADER)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@in_loop
async def test_a_leader_paused_for_long_refuses_before_it_is_notified(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1)
        await produce(brokers, 1, b"first")

        brokers.catalog.nodes[1].is_fenced = True  # by its own clock; no event has arrived yet

        assert (await produce(brokers, 1, b"second")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (await fetch(brokers, 1)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@in_loop
async def test_a_produce_that_is_not_replicated_in_time_is_an_error(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1)
        await produce(brokers, 1, b"first")
        brokers.catalog.nodes[1].is_deaf = True
        for node in (2, 3):
            await brokers[node].replication.stop()  # type: ignore[union-attr]

        answer = await produce(brokers, 1, b"second", timeout_ms=1)

        assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT


@in_loop
async def test_a_new_leader_returns_no_latest_offset_before_its_high_watermark_is_known(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1)
        await produce(brokers, 1, b"first")
        await brokers[3].replication.stop()  # type: ignore[union-attr]
        await brokers.kill(2)
        brokers.catalog.change(brokers.key, isr=(1, 3))
        await produce(brokers, 1, b"second", acks=LEADER)
        brokers.catalog.elect(brokers.key, 2)
        brokers.catalog.elect(brokers.key, 1)
        replica = brokers.replica(1)
        await until(lambda: replica.leader_epoch == 2)

        latest = ListOffsetsPartition(partition_index=0, timestamp=-1)
        request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=(latest,)),))
        [answer] = (await brokers.ask(1, request)).topics[0].partitions
        assert answer.error_code == ErrorCode.OFFSET_NOT_AVAILABLE


@in_loop
async def test_a_consumer_reads_from_the_replica_in_its_rack(tmp_path: Path) -> None:
    async with brokers_of(tmp_path, racks=("a", "b", "c")) as brokers:
        brokers.place(leader=1)
        await produce(brokers, 1, b"v")

        data = await fetch(brokers, 1, rack="b")
        assert (data.preferred_read_replica, data.records) == (2, b"")
        follower = brokers[2].topics.partition("t", 0)
        await until(lambda: follower.high_watermark == 1)
        assert await values_on(brokers, 2, rack="b") == [b"v"]
        assert (await fetch(brokers, 2, offset=9, rack="b")).error_code == ErrorCode.OFFSET_NOT_AVAILABLE


@in_loop
async def test_the_high_watermark_survives_a_restart(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1)
        await produce(brokers, 1, b"first", b"second")
        await brokers.kill(1)

        assert (tmp_path / "1" / "replication-offset-checkpoint").read_text() == "0\n1\nt 0 2\n"


@in_loop
async def test_after_a_crash_a_node_does_not_lead_in_the_same_epoch(tmp_path: Path) -> None:
    async with brokers_of(tmp_path, count=1) as brokers:
        brokers.place(leader=1)
        await produce(brokers, 1, b"first")
        await brokers.kill(1)
        await brokers.start(1)
        assert (await produce(brokers, 1, b"second")).error_code == ErrorCode.NONE  # it had stopped cleanly

        await brokers.kill(1)
        (tmp_path / "1" / CLEAN_SHUTDOWN).unlink()
        await brokers.start(1)
        assert (await produce(brokers, 1, b"third")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

        brokers.catalog.elect(brokers.key, 1)
        await produce_until_taken(brokers, 1, b"third")


@pytest.mark.parametrize("node", [1, 2])
def test_a_moved_partition_leaves_nothing_behind(tmp_path: Path, node: int) -> None:
    @in_loop
    async def moved() -> None:
        async with brokers_of(tmp_path) as brokers:
            brokers.place(leader=1)
            await produce(brokers, 1, b"v")
            rest = tuple(each for each in (1, 2, 3) if each != node)
            brokers.catalog.elect(brokers.key, rest[0], isr=rest)
            brokers.catalog.change(brokers.key, replicas=rest)

            await until(lambda: not (tmp_path / str(node) / "t-0").exists())
            await produce_until_taken(brokers, rest[0], b"w")
            assert ends_of(brokers, rest) == [2, 2]

    moved()


def ends_of(brokers: Brokers, nodes: tuple[int, ...]) -> list[int]:
    return [brokers.log(node).next_offset for node in nodes]


@in_loop
async def test_clients_are_not_sent_to_a_leader_that_refuses_connections(tmp_path: Path) -> None:
    async with brokers_of(tmp_path) as brokers:
        brokers.place(leader=1)
        assert (await produce(brokers, 1, b"v")).error_code == ErrorCode.NONE
        seen = ClusterTopology(brokers[2], brokers.catalog.nodes[2])
        topic = brokers[2].topics.by_name["t"]
        assert seen.placed(topic, 0).leader == 1

        await brokers.end_process(1)
        await until(lambda: seen.placed(topic, 0).leader == -1)
        assert (seen.placed(topic, 0).error_code, brokers.state().leader) == (ErrorCode.LEADER_NOT_AVAILABLE, 1)
        assert 1 in seen.node_ids

        await brokers.start(1)
        await until(lambda: seen.placed(topic, 0).leader == 1)
