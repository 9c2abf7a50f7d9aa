"""Fetch (1): read records from partitions, optionally waiting for them.

From version 7 on within a fetch session (KIP-227); from version 13 with topic ids.
"""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import (
    NO_UUID,
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
    Tag,
    Until,
    Uuid,
)


class AbortedTransaction(Message, frozen=True, kw_only=True):
    producer_id: Int64
    first_offset: Int64


class EpochEndOffset(Message, frozen=True, kw_only=True):
    epoch: Int32 = -1
    end_offset: Int64 = -1


class LeaderIdAndEpoch(Message, frozen=True, kw_only=True):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class SnapshotId(Message, frozen=True, kw_only=True):
    end_offset: Int64 = -1
    epoch: Int32 = -1


class PartitionData(Message, frozen=True, kw_only=True):
    partition_index: Int32
    error_code: Int16
    high_watermark: Int64
    last_stable_offset: Int64 = -1
    log_start_offset: Annotated[Int64, Since(5)] = -1
    diverging_epoch: Annotated[EpochEndOffset, Tag(0, since=12)] = EpochEndOffset()
    current_leader: Annotated[LeaderIdAndEpoch, Tag(1, since=12)] = LeaderIdAndEpoch()
    snapshot_id: Annotated[SnapshotId, Tag(2, since=12)] = SnapshotId()
    tombstones_removed_until: Annotated[Int64, Tag(10_000, since=12)] = 0
    """Specific to Ottla, in responses to followers; other readers skip the tag."""
    aborted_transactions: tuple[AbortedTransaction, ...] | None
    preferred_read_replica: Annotated[Int32, Since(11)] = -1
    records: Records


class FetchableTopicResponse(Message, frozen=True, kw_only=True):
    topic: Annotated[String, Until(12)] = ""
    topic_id: Annotated[Uuid, Since(13)] = NO_UUID
    partitions: tuple[PartitionData, ...]


class NodeEndpoint(Message, frozen=True, kw_only=True):
    node_id: Int32
    host: String
    port: Int32
    rack: NullableString = None


class FetchResponse(Response, frozen=True, kw_only=True):
    API = apis.FETCH

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, Since(7)] = 0
    session_id: Annotated[Int32, Since(7)] = 0
    responses: tuple[FetchableTopicResponse, ...]
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], Tag(0, since=16)] = ()


class FetchPartition(Message, frozen=True, kw_only=True):
    partition: Int32
    current_leader_epoch: Annotated[Int32, Since(9)] = -1
    fetch_offset: Int64
    last_fetched_epoch: Annotated[Int32, Since(12)] = -1
    log_start_offset: Annotated[Int64, Since(5)] = -1
    partition_max_bytes: Int32
    replica_directory_id: Annotated[Uuid, Tag(0, since=17)] = NO_UUID
    high_watermark: Annotated[Int64, Tag(1, since=18)] = 9223372036854775807


class FetchTopic(Message, frozen=True, kw_only=True):
    topic: Annotated[String, Until(12)] = ""
    topic_id: Annotated[Uuid, Since(13)] = NO_UUID
    partitions: tuple[FetchPartition, ...]


class ForgottenTopic(Message, frozen=True, kw_only=True):
    topic: Annotated[String, Until(12)] = ""
    topic_id: Annotated[Uuid, Since(13)] = NO_UUID
    partitions: tuple[Int32, ...]


class ReplicaState(Message, frozen=True, kw_only=True):
    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


class FetchRequest(Request, frozen=True, kw_only=True):
    API = apis.FETCH
    RESPONSE: ClassVar = FetchResponse

    cluster_id: Annotated[NullableString, Tag(0, since=12)] = None
    replica_id: Annotated[Int32, Until(14)] = -1
    replica_state: Annotated[ReplicaState, Tag(1, since=15)] = ReplicaState()
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 2147483647
    isolation_level: Int8 = 0
    session_id: Annotated[Int32, Since(7)] = 0
    session_epoch: Annotated[Int32, Since(7)] = -1
    topics: tuple[FetchTopic, ...]
    forgotten_topics_data: Annotated[tuple[ForgottenTopic, ...], Since(7)] = ()
    rack_id: Annotated[String, Since(11)] = ""
