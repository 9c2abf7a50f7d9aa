"""TxnOffsetCommit (28): commit a group's offsets with a transaction."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, Int64, Message, NullableString, Request, Response, Since, String


class TxnOffsetCommitResponsePartition(Message, frozen=True, kw_only=True):
    partition_index: Int32
    error_code: Int16


class TxnOffsetCommitResponseTopic(Message, frozen=True, kw_only=True):
    name: String
    partitions: tuple[TxnOffsetCommitResponsePartition, ...]


class TxnOffsetCommitResponse(Response, frozen=True, kw_only=True):
    API = apis.TXN_OFFSET_COMMIT

    throttle_time_ms: Int32 = 0
    topics: tuple[TxnOffsetCommitResponseTopic, ...]


class TxnOffsetCommitRequestPartition(Message, frozen=True, kw_only=True):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, Since(2)] = -1
    committed_metadata: NullableString


class TxnOffsetCommitRequestTopic(Message, frozen=True, kw_only=True):
    name: String
    partitions: tuple[TxnOffsetCommitRequestPartition, ...]


class TxnOffsetCommitRequest(Request, frozen=True, kw_only=True):
    API = apis.TXN_OFFSET_COMMIT
    RESPONSE: ClassVar = TxnOffsetCommitResponse

    transactional_id: String
    group_id: String
    producer_id: Int64
    producer_epoch: Int16
    generation_id: Annotated[Int32, Since(3)] = -1
    member_id: Annotated[String, Since(3)] = ""
    group_instance_id: Annotated[NullableString, Since(3)] = None
    topics: tuple[TxnOffsetCommitRequestTopic, ...]
