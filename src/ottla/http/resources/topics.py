"""Topics: list, show, create, delete, add partitions, configs, delete records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import msgspec

from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.broker.interfaces.partition_facts import bounds, sizes
from ottla.core.errors import ErrorCode, OffsetOutOfRange, UnknownTopicOrPartition
from ottla.core.ids import TopicPartition
from ottla.core.pipeline_status import PIPELINES_TOPIC
from ottla.core.security import AclOperation, ResourceType
from ottla.http.framework.endpoints import Endpoint, others
from ottla.http.framework.models import Done, OffsetNumber, PartitionIndex, RequestStruct, Struct
from ottla.http.resources.configs import TOPIC, ConfigChanges, ConfigList, ConfigValue, changed, described, text_of
from ottla.wire.declare import NO_UUID
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ottla.broker.interfaces.partition_facts import Bounds
    from ottla.broker.partition import Partition
    from ottla.broker.topics import TopicState
    from ottla.http.framework.endpoints import Call

Count = Annotated[int, msgspec.Meta(ge=-1, le=(1 << 31) - 1)]
ReplicationFactor = Annotated[int, msgspec.Meta(ge=-1, le=(1 << 15) - 1)]

_TIMEOUT_MS: Final = 60_000
_TURN_TOPICS: Final = 100
_TO_THE_END: Final = -1
_OPERATIONS: Final = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.ALTER,
    AclOperation.DELETE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)


class TopicSummary(Struct, frozen=True, kw_only=True):
    name: str
    topic_id: str
    partitions: int
    is_internal: bool
    messages: int
    """The sum of end minus start offsets; compaction may have left fewer messages."""
    size_bytes: int


class TopicList(Struct, frozen=True, kw_only=True):
    topics: list[TopicSummary]


class TopicsQuery(RequestStruct, frozen=True, kw_only=True):
    prefix: str = ""
    internal: bool = False
    """Include internal topics."""


def is_own(state: TopicState) -> bool:
    """Whether a topic is internal; to Kafka clients the pipelines topic is a normal topic."""
    return state.entry.is_internal or state.name == PIPELINES_TOPIC


async def list_topics(call: Call) -> TopicList:
    query = call.query(TopicsQuery)
    wanted = []
    for number, (name, state) in enumerate(sorted(call.broker.topics.by_name.items()), 1):
        is_wanted = name.startswith(query.prefix) and (query.internal or not is_own(state))
        if is_wanted and call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            wanted.append(state)
        if number % _TURN_TOPICS == 0:
            await others()
    known = await _known(call, wanted)
    return TopicList(topics=[_summary(state, known) for state in wanted])


class _Known(NamedTuple):
    """Offsets and sizes of partitions, on any leader."""

    bounds: dict[TopicPartition, Bounds]
    sizes: dict[TopicPartition, int]


async def _known(call: Call, states: Iterable[TopicState]) -> _Known:
    partitions = [partition for state in states for partition in state.partitions]
    return _Known(await bounds(call.broker, partitions, is_lenient=True), await sizes(call.broker, partitions))


def _summary(state: TopicState, known: _Known) -> TopicSummary:
    places = [partition.at for partition in state.partitions]
    return TopicSummary(
        name=state.name,
        topic_id=state.entry.id.text,
        partitions=len(state.partitions),
        is_internal=is_own(state),
        messages=sum(known.bounds[at].end - known.bounds[at].start for at in places),
        size_bytes=sum(known.sizes[at] for at in places),
    )


class SegmentInfo(Struct, frozen=True, kw_only=True):
    base_offset: int
    size_bytes: int


class PartitionInfo(Struct, frozen=True, kw_only=True):
    partition: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    in_sync: list[int]
    start_offset: int
    """The log start offset; for a partition without a leader or local replica, this and the sizes are 0."""
    end_offset: int
    """The log end offset."""
    size_bytes: int
    segments: list[SegmentInfo]
    """Of the replica on this node, if any."""


class Topic(Struct, frozen=True, kw_only=True):
    name: str
    topic_id: str
    is_internal: bool
    messages: int
    size_bytes: int
    partitions: list[PartitionInfo]
    configs: dict[str, str]
    """The configs set on this topic; GET …/configs shows all."""
    operations: list[str]
    """What the user may do with it, such as READ or WRITE."""


def topic_of(call: Call) -> TopicState:
    name = call.path("name")
    call.broker.check_topic_name(name)
    call.check(AclOperation.DESCRIBE, ResourceType.TOPIC, name)
    state = call.broker.topics.by_name.get(name)
    if state is None:
        raise UnknownTopicOrPartition(f"no topic {name!r}")
    return state


def no_such_partition(state: TopicState, index: int) -> UnknownTopicOrPartition:
    count = len(state.partitions)
    there = "1 partition" if count == 1 else f"{count} partitions"
    return UnknownTopicOrPartition(f"no partition {index} in topic {state.name} (it has {there})")


async def show_topic(call: Call) -> Topic:
    return await _shown(call, topic_of(call))


async def _shown(call: Call, state: TopicState) -> Topic:
    known = await _known(call, [state])
    summary = _summary(state, known)
    sees_configs = call.may(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, state.name)
    partitions = [_partition(call, state, partition, known) for partition in state.partitions]
    return Topic(
        name=summary.name,
        topic_id=summary.topic_id,
        is_internal=summary.is_internal,
        messages=summary.messages,
        size_bytes=summary.size_bytes,
        partitions=partitions,
        configs=dict(state.entry.configs) if sees_configs else {},
        operations=[one.name for one in _OPERATIONS if call.may(one, ResourceType.TOPIC, state.name)],
    )


def _partition(call: Call, state: TopicState, partition: Partition, known: _Known) -> PartitionInfo:
    placed = call.broker.topology.placed(state, partition.at.partition)
    return PartitionInfo(
        partition=partition.at.partition,
        leader=placed.leader,
        leader_epoch=placed.leader_epoch,
        replicas=list(placed.replicas),
        in_sync=list(placed.isr),
        start_offset=known.bounds[partition.at].start,
        end_offset=known.bounds[partition.at].end,
        size_bytes=known.sizes[partition.at],
        segments=[SegmentInfo(base_offset=base_offset, size_bytes=size) for base_offset, size in _segments(partition)],
    )


def _segments(partition: Partition) -> Sequence[tuple[int, int]]:
    if not partition.is_here or partition.is_unopenable:
        return ()
    known = () if partition.is_open else partition.facts.segments
    return [(one.base_offset, one.size) for one in partition.log.segments] if partition.is_open else known


class NewTopic(RequestStruct, frozen=True, kw_only=True):
    name: str
    partitions: Count = -1
    """-1 for the default."""
    replication_factor: ReplicationFactor = -1
    configs: dict[str, ConfigValue] | None = None
    dry_run: bool = False
    """Only validate the request."""


class CreatedTopic(Struct, frozen=True, kw_only=True):
    name: str
    topic_id: str | None
    """Null after a dry run."""
    partitions: int
    replication_factor: int


async def create_topic(call: Call) -> CreatedTopic:
    wanted = await call.body(NewTopic)
    call.broker.check_topic_name(wanted.name)
    topic = CreatableTopic(
        name=wanted.name,
        num_partitions=wanted.partitions,
        replication_factor=wanted.replication_factor,
        assignments=(),
        configs=tuple(
            CreatableTopicConfig(name=name, value=text_of(value)) for name, value in (wanted.configs or {}).items()
        ),
    )
    [result] = (await call.ask(CreateTopicsRequest(topics=(topic,), validate_only=wanted.dry_run))).topics
    raise_refusal(result.error_code, result.error_message)
    state = call.broker.topics.by_name.get(wanted.name)
    return CreatedTopic(
        name=wanted.name,
        topic_id=None if state is None else state.entry.id.text,
        partitions=result.num_partitions,
        replication_factor=result.replication_factor,
    )


async def delete_topic(call: Call) -> Done:
    wanted = DeleteTopicState(name=topic_of(call).name, topic_id=NO_UUID)
    [result] = (await call.ask(DeleteTopicsRequest(topics=(wanted,), timeout_ms=_TIMEOUT_MS))).responses
    raise_refusal(result.error_code, result.error_message)
    return Done()


class PartitionCount(RequestStruct, frozen=True, kw_only=True):
    count: Annotated[int, msgspec.Meta(ge=1, le=(1 << 31) - 1)]
    """The new total number."""
    dry_run: bool = False
    """Only validate the request."""


async def add_partitions(call: Call) -> Topic:
    state = topic_of(call)
    wanted = await call.body(PartitionCount)
    topic = CreatePartitionsTopic(name=state.name, count=wanted.count, assignments=None)
    request = CreatePartitionsRequest(topics=(topic,), timeout_ms=_TIMEOUT_MS, validate_only=wanted.dry_run)
    [result] = (await call.ask(request)).results
    raise_refusal(result.error_code, result.error_message)
    return await _shown(call, state)


class RecordsToDelete(RequestStruct, frozen=True, kw_only=True):
    partition: PartitionIndex = 0
    before_offset: OffsetNumber | None = None
    """Delete all records below this offset; null for all records."""


class DeletedRecords(Struct, frozen=True, kw_only=True):
    partition: int
    start_offset: int
    """The new log start offset."""


async def delete_records(call: Call) -> DeletedRecords:
    state = topic_of(call)
    wanted = await call.body(RecordsToDelete)
    offset = _TO_THE_END if wanted.before_offset is None else wanted.before_offset
    partition = DeleteRecordsPartition(partition_index=wanted.partition, offset=offset)
    topic = DeleteRecordsTopic(name=state.name, partitions=(partition,))
    answer = await call.ask(DeleteRecordsRequest(topics=(topic,), timeout_ms=_TIMEOUT_MS))
    [result] = answer.topics[0].partitions
    if result.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        at = TopicPartition(state.name, wanted.partition)
        there = (await bounds(call.broker, [state.partitions[wanted.partition]]))[at]
        raise OffsetOutOfRange(f"{at} has offsets {there.start} to {there.end}, not {offset}")
    raise_refusal(result.error_code)
    return DeletedRecords(partition=wanted.partition, start_offset=result.low_watermark)


async def show_configs(call: Call) -> ConfigList:
    return await described(call, TOPIC, topic_of(call).name)


async def change_configs(call: Call) -> ConfigList:
    state = topic_of(call)
    return await changed(call, TOPIC, state.name, await call.body(ConfigChanges))


_TOPIC: Final = "/v1/topics/{name}"

ENDPOINTS: Final = (
    Endpoint("GET", "/v1/topics", list_topics, "All topics", query=TopicsQuery, answer=TopicList),
    Endpoint("POST", "/v1/topics", create_topic, "Create a topic", body=NewTopic, answer=CreatedTopic, status=201),
    Endpoint("GET", _TOPIC, show_topic, "A topic with its partitions and segments", answer=Topic),
    Endpoint("DELETE", _TOPIC, delete_topic, "Delete a topic and all its messages", answer=Done),
    Endpoint(
        "POST",
        f"{_TOPIC}/partitions",
        add_partitions,
        "Add partitions to a topic",
        body=PartitionCount,
        answer=Topic,
    ),
    Endpoint(
        "POST",
        f"{_TOPIC}/delete-records",
        delete_records,
        "Delete the oldest records of a partition",
        body=RecordsToDelete,
        answer=DeletedRecords,
    ),
    Endpoint("GET", f"{_TOPIC}/configs", show_configs, "The configs of a topic", answer=ConfigList),
    Endpoint(
        "PATCH",
        f"{_TOPIC}/configs",
        change_configs,
        "Change configs of a topic",
        body=ConfigChanges,
        answer=ConfigList,
    ),
)
