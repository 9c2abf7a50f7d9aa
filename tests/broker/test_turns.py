"""Requests with many entries yield to others, and their responses are the same."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

import ottla
from ottla.broker.broker import Broker
from ottla.broker.requests import turns
from ottla.broker.settings import Settings
from ottla.core.errors import ErrorCode
from ottla.records.reader import RecordReader
from ottla.wire.codec import decode_response, encode_request
from ottla.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

from .making import NAMES_UNTIL, ask_until, batch, create_topic, produce, values_in
from .raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ottla.wire.declare import Request

MANY = 300
ENOUGH = turns.FEW + 1
INDEXES = range(MANY)
NAMES = tuple(f"topic-{number}" for number in INDEXES)
TOPIC = 2


def fetch_many(topic: str, count: int = MANY, *, max_wait_ms: int = 0) -> FetchRequest:
    wanted = tuple(FetchPartition(partition=each, fetch_offset=0, partition_max_bytes=1000) for each in range(count))
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=(FetchTopic(topic=topic, partitions=wanted),),
    )


def produce_many(topic: str, count: int = MANY, acks: int = -1) -> ProduceRequest:
    data = tuple(PartitionProduceData(index=each, records=batch(b"%d" % each)) for each in range(count))
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=(TopicProduceData(name=topic, partition_data=data),))


LARGE: dict[str, tuple[Request, int]] = {
    "produce": (produce_many("unknown"), 12),
    "fetch": (fetch_many("unknown"), 12),
    "list-offsets": (
        ListOffsetsRequest(
            replica_id=-1,
            topics=(
                ListOffsetsTopic(
                    name="x",
                    partitions=tuple(ListOffsetsPartition(partition_index=each, timestamp=-1) for each in INDEXES),
                ),
            ),
        ),
        7,
    ),
    "leader-epochs": (
        OffsetForLeaderEpochRequest(
            topics=(
                OffsetForLeaderTopic(
                    topic="x",
                    partitions=tuple(OffsetForLeaderPartition(partition=each, leader_epoch=0) for each in INDEXES),
                ),
            )
        ),
        4,
    ),
    "metadata": (
        MetadataRequest(
            topics=tuple(MetadataRequestTopic(name=name) for name in NAMES), allow_auto_topic_creation=False
        ),
        9,
    ),
    "offset-fetch-of-one-group": (
        OffsetFetchRequest(group_id="g", topics=(OffsetFetchRequestTopic(name="x", partition_indexes=tuple(INDEXES)),)),
        7,
    ),
    "offset-fetch": (
        OffsetFetchRequest(
            groups=(
                OffsetFetchRequestGroup(
                    group_id="g",
                    topics=(OffsetFetchRequestTopics(name="x", partition_indexes=tuple(INDEXES)),),
                ),
            )
        ),
        9,
    ),
    "find-coordinator": (FindCoordinatorRequest(key_type=0, coordinator_keys=NAMES), 4),
    "describe-groups": (DescribeGroupsRequest(groups=NAMES), 5),
    "delete-groups": (DeleteGroupsRequest(groups_names=NAMES), 2),
    "delete-records": (
        DeleteRecordsRequest(
            topics=(
                DeleteRecordsTopic(
                    name="x",
                    partitions=tuple(DeleteRecordsPartition(partition_index=each, offset=0) for each in INDEXES),
                ),
            ),
            timeout_ms=0,
        ),
        2,
    ),
    "describe-configs": (
        DescribeConfigsRequest(
            resources=tuple(
                DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=None)
                for name in NAMES
            )
        ),
        4,
    ),
    "alter-configs": (
        AlterConfigsRequest(
            resources=tuple(
                AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=()) for name in NAMES
            ),
            validate_only=False,
        ),
        2,
    ),
    "create-partitions": (
        CreatePartitionsRequest(
            topics=tuple(CreatePartitionsTopic(name=name, count=2, assignments=None) for name in NAMES),
            timeout_ms=0,
            validate_only=False,
        ),
        3,
    ),
    "delete-topics": (
        DeleteTopicsRequest(
            topics=tuple(DeleteTopicState(name=name, topic_id=bytes(16)) for name in NAMES), timeout_ms=0
        ),
        6,
    ),
    "describe-topic-partitions": (
        DescribeTopicPartitionsRequest(topics=tuple(TopicRequest(name=name) for name in NAMES)),
        0,
    ),
}


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Request, int], tuple[Any, int]]]:
    """A broker without a network, called directly; counts how often other requests could have been served."""
    with asyncio.Runner() as runner:
        config = replace(Settings().broker, data_dir=tmp_path_factory.mktemp("idle"), auto_create_topics=False)
        settings = Settings(broker=config, net=replace(Settings().net, port=0))

        async def made() -> Broker:
            return Broker(settings)

        broker = runner.run(made())
        yield lambda request, version: runner.run(answered(broker, request, version))
        broker.close()


async def answered(broker: Broker, request: Request, version: int) -> tuple[Any, int]:
    loop = asyncio.get_running_loop()
    served = 0

    def serve() -> None:
        nonlocal served
        served += 1
        loop.call_soon(serve)

    loop.call_soon(serve)
    frame = b"".join(encode_request(request, version, 1, "test"))
    connection: Any = SimpleNamespace(
        peer=("127.0.0.1", 1),
        local=("127.0.0.1", 1),
        listener="PLAINTEXT",
        advertised=None,
        principal="User:ANONYMOUS",
        state={},
        sends_files=False,
    )
    answer = broker.dispatcher.answer(connection, memoryview(bytearray(frame))[4:])
    buffers = answer if isinstance(answer, list) else await answer  # type: ignore[misc]
    response = decode_response(request, version, 1, memoryview(b"".join(buffers or ()))[4:])  # type: ignore[type-var]
    return response, served


@pytest.mark.parametrize(("request_", "version"), LARGE.values(), ids=LARGE)
def test_a_long_request_yields_to_others(
    idle: Callable[[Request, int], tuple[Any, int]],
    monkeypatch: pytest.MonkeyPatch,
    request_: Request,
    version: int,
) -> None:
    monkeypatch.setattr(turns, "_TURN_S", 1000.0)
    at_once, served = idle(request_, version)
    assert served < MANY // 16
    monkeypatch.setattr(turns, "_TURN_S", 0.0)
    in_turns, served = idle(request_, version)
    assert served >= MANY // 16
    assert in_turns == at_once


def test_a_turn_ends_after_its_time_slice_and_another_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(turns, "monotonic", lambda: now_s)
    ours = turns.Turns()
    assert not ours.are_over()
    now_s += 1
    assert ours.are_over()
    assert not ours.are_over()
    now_s += 1
    assert ours.are_over()


# Requests with many partitions take other code paths than those with few


def test_records_for_many_partitions_arrive_in_each(client: RawClient, name: str) -> None:
    create_topic(client, name, partitions=ENOUGH)
    [answer] = client.ask(produce_many(name, ENOUGH + 1), NAMES_UNTIL["produce"]).responses
    codes = [result.error_code for result in answer.partition_responses]
    assert codes == [ErrorCode.NONE] * ENOUGH + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    [topic] = client.ask(fetch_many(name, ENOUGH), NAMES_UNTIL["fetch"]).responses
    found = [record.value for part in topic.partitions for record in RecordReader(bytes(part.records or b""))]
    assert found == [b"%d" % each for each in range(ENOUGH)]
    client.send(produce_many(name, ENOUGH, acks=0), NAMES_UNTIL["produce"])
    assert values_in(client, name, partition=ENOUGH - 1) == [b"%d" % (ENOUGH - 1)] * 2


def test_records_for_many_partitions_are_synced_before_they_are_acknowledged(tmp_path: Path) -> None:
    settings = Settings(net=replace(Settings().net, port=0), log=replace(Settings().log, flush="ack"))
    with ottla.Broker(tmp_path, settings) as broker, RawClient(broker.bootstrap_servers) as client:
        create_topic(client, "many", partitions=ENOUGH)
        [answer] = client.ask(produce_many("many", ENOUGH), NAMES_UNTIL["produce"]).responses
        assert {result.error_code for result in answer.partition_responses} == {ErrorCode.NONE}
        assert {part.log.recovery_point for part in broker.broker.topics.partitions_here()} == {1}


def test_a_fetch_of_many_partitions_waits_for_any_of_them(broker: ottla.Broker, client: RawClient, name: str) -> None:
    create_topic(client, name, partitions=ENOUGH)
    last = broker.broker.topics.partition(name, ENOUGH - 1)
    with RawClient(broker.bootstrap_servers) as another:
        waiting = another.send(fetch_many(name, ENOUGH, max_wait_ms=60_000), NAMES_UNTIL["fetch"])
        ask_until(client, lambda: len(last.waits) == 1)
        produce(client, name, b"here", partition=7)
        [topic] = another.receive(waiting).responses
    found = {part.partition_index for part in topic.partitions if part.records}
    assert found == {7}
    ask_until(client, lambda: not any(part.waits for part in broker.broker.topics.by_name[name].partitions))


def test_a_fetch_of_many_partitions_ends_at_its_timeout(client: RawClient, name: str) -> None:
    create_topic(client, name, partitions=ENOUGH)
    [topic] = client.ask(fetch_many(name, ENOUGH, max_wait_ms=10), NAMES_UNTIL["fetch"]).responses
    assert {part.error_code for part in topic.partitions} == {ErrorCode.NONE}
    assert not any(part.records for part in topic.partitions)


def test_a_commit_of_very_many_offsets_is_split(client: RawClient, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from ottla.broker.handlers import group_offsets  # noqa: PLC0415 - the handler, as a broker imports it

    monkeypatch.setattr(group_offsets, "_COMMITTED_AT_ONCE", 100)
    names = [name, f"{name}-b", f"{name}-c"]
    for each in names:
        create_topic(client, each, partitions=MANY)
    topics = tuple(
        OffsetCommitRequestTopic(
            name=each,
            partitions=tuple(
                OffsetCommitRequestPartition(partition_index=index, committed_offset=index, committed_metadata=None)
                for index in range(count)
            ),
        )
        for each, count in zip(names, (MANY + 1, 5, 0), strict=True)
    )
    answer = client.ask(OffsetCommitRequest(group_id=name, member_id="", topics=topics), 8)
    codes = {
        (topic.name, part.partition_index): part.error_code for topic in answer.topics for part in topic.partitions
    }
    refused = {at for at, code in codes.items() if code != ErrorCode.NONE}
    assert (len(codes), refused) == (MANY + 6, {(name, MANY)})
    fetched = OffsetFetchRequest(group_id=name, topics=None)
    committed = {
        (topic.name, part.partition_index): part.committed_offset
        for topic in client.ask(fetched, 7).topics
        for part in topic.partitions
    }
    assert committed == {at: at[1] for at in codes if at not in refused}
