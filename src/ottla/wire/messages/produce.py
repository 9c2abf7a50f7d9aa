"""Produce (0): append record batches to partitions.

Versions 0-2 are advertised, because old librdkafka disables compression without them, but rejected, as in
Kafka 4. From version 13 with topic ids.
"""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import (
    NO_UUID,
    Int16,
    Int32,
    Int64,
    Message,
    NullableString,
    Records,
    Request,
    Response,
    Since,
    String,
    Tag,
    Until,
    Uuid,
)


class BatchIndexAndErrorMessage(Message, frozen=True, kw_only=True):
    batch_index: Int32
    batch_index_error_message: NullableString = None


class LeaderIdAndEpoch(Message, frozen=True, kw_only=True):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class PartitionProduceResponse(Message, frozen=True, kw_only=True):
    index: Int32
    error_code: Int16
    base_offset: Int64
    log_append_time_ms: Int64 = -1
    log_start_offset: Annotated[Int64, Since(5)] = -1
    record_errors: Annotated[tuple[BatchIndexAndErrorMessage, ...], Since(8)] = ()
    error_message: Annotated[NullableString, Since(8)] = None
    current_leader: Annotated[LeaderIdAndEpoch, Tag(0, since=10)] = LeaderIdAndEpoch()


class TopicProduceResponse(Message, frozen=True, kw_only=True):
    name: Annotated[String, Until(12)] = ""
    topic_id: Annotated[Uuid, Since(13)] = NO_UUID
    partition_responses: tuple[PartitionProduceResponse, ...]


class NodeEndpoint(Message, frozen=True, kw_only=True):
    node_id: Int32
    host: String
    port: Int32
    rack: NullableString = None


class ProduceResponse(Response, frozen=True, kw_only=True):
    API = apis.PRODUCE

    responses: tuple[TopicProduceResponse, ...]
    throttle_time_ms: Int32 = 0
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], Tag(0, since=10)] = ()


class PartitionProduceData(Message, frozen=True, kw_only=True):
    index: Int32
    records: Records


class TopicProduceData(Message, frozen=True, kw_only=True):
    name: Annotated[String, Until(12)] = ""
    topic_id: Annotated[Uuid, Since(13)] = NO_UUID
    partition_data: tuple[PartitionProduceData, ...]


class ProduceRequest(Request, frozen=True, kw_only=True):
    API = apis.PRODUCE
    RESPONSE: ClassVar = ProduceResponse

    transactional_id: NullableString = None
    acks: Int16
    timeout_ms: Int32
    topic_data: tuple[TopicProduceData, ...]
