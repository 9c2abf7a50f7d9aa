"""ShareAcknowledge (79): acknowledge acquired records (KIP-932)."""

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
    Request,
    Response,
    Since,
    String,
    Uuid,
)


class LeaderIdAndEpoch(Message, frozen=True, kw_only=True):
    leader_id: Int32
    leader_epoch: Int32


class PartitionData(Message, frozen=True, kw_only=True):
    partition_index: Int32
    error_code: Int16
    error_message: NullableString = None
    current_leader: LeaderIdAndEpoch


class ShareAcknowledgeTopicResponse(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    partitions: tuple[PartitionData, ...]


class NodeEndpoint(Message, frozen=True, kw_only=True):
    node_id: Int32
    host: String
    port: Int32
    rack: NullableString = None


class ShareAcknowledgeResponse(Response, frozen=True, kw_only=True):
    API = apis.SHARE_ACKNOWLEDGE

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: NullableString = None
    acquisition_lock_timeout: Annotated[Int32, Since(2)] = 0
    responses: tuple[ShareAcknowledgeTopicResponse, ...]
    node_endpoints: tuple[NodeEndpoint, ...]


class AcknowledgementBatch(Message, frozen=True, kw_only=True):
    first_offset: Int64
    last_offset: Int64
    acknowledge_types: tuple[Int8, ...]


class AcknowledgePartition(Message, frozen=True, kw_only=True):
    partition_index: Int32
    acknowledgement_batches: tuple[AcknowledgementBatch, ...]


class AcknowledgeTopic(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    partitions: tuple[AcknowledgePartition, ...]


class ShareAcknowledgeRequest(Request, frozen=True, kw_only=True):
    API = apis.SHARE_ACKNOWLEDGE
    RESPONSE: ClassVar = ShareAcknowledgeResponse

    group_id: NullableString = None
    member_id: NullableString
    share_session_epoch: Int32
    is_renew_ack: Annotated[Bool, Since(2)] = False
    topics: tuple[AcknowledgeTopic, ...]
