"""ShareFetch (78): acquire records of a share group, and acknowledge earlier ones (KIP-932)."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import (
    Bool,
    Int8,
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
    Uuid,
)


class LeaderIdAndEpoch(Message, frozen=True, kw_only=True):
    leader_id: Int32
    leader_epoch: Int32


class AcquiredRecords(Message, frozen=True, kw_only=True):
    first_offset: Int64
    last_offset: Int64
    delivery_count: Int16


class PartitionData(Message, frozen=True, kw_only=True):
    partition_index: Int32
    error_code: Int16
    error_message: NullableString = None
    acknowledge_error_code: Int16
    acknowledge_error_message: NullableString = None
    current_leader: LeaderIdAndEpoch
    records: Records
    acquired_records: tuple[AcquiredRecords, ...]


class ShareFetchableTopicResponse(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    partitions: tuple[PartitionData, ...]


class NodeEndpoint(Message, frozen=True, kw_only=True):
    node_id: Int32
    host: String
    port: Int32
    rack: NullableString = None


class ShareFetchResponse(Response, frozen=True, kw_only=True):
    API = apis.SHARE_FETCH

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: NullableString = None
    acquisition_lock_timeout: Int32
    responses: tuple[ShareFetchableTopicResponse, ...]
    node_endpoints: tuple[NodeEndpoint, ...]


class AcknowledgementBatch(Message, frozen=True, kw_only=True):
    first_offset: Int64
    last_offset: Int64
    acknowledge_types: tuple[Int8, ...]


class FetchPartition(Message, frozen=True, kw_only=True):
    partition_index: Int32
    acknowledgement_batches: tuple[AcknowledgementBatch, ...]


class FetchTopic(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    partitions: tuple[FetchPartition, ...]


class ForgottenTopic(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    partitions: tuple[Int32, ...]


class ShareFetchRequest(Request, frozen=True, kw_only=True):
    API = apis.SHARE_FETCH
    RESPONSE: ClassVar = ShareFetchResponse

    group_id: NullableString = None
    member_id: NullableString
    share_session_epoch: Int32
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 2147483647
    max_records: Int32
    batch_size: Int32
    share_acquire_mode: Annotated[Int8, Since(2)] = 0
    is_renew_ack: Annotated[Bool, Since(2)] = False
    topics: tuple[FetchTopic, ...]
    forgotten_topics_data: tuple[ForgottenTopic, ...]
