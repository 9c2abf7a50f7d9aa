"""The record formats of share groups in Kafka 4.3.

In `__consumer_offsets` ShareGroupMemberMetadataKey.json and related files, in `__share_group_state`
ShareSnapshotKey.json and related files. The version of a key is its type.
"""

from typing import Annotated

from ottla.wire.declare import Int8, Int16, Int32, Int64, Message, NullableString, String, Tag, Uuid

# ── __consumer_offsets ───────────────────────────────────────────────────────────────────────────────────────


class GroupKey(Message, frozen=True, kw_only=True):
    group_id: String


class MemberKey(Message, frozen=True, kw_only=True):
    group_id: String
    member_id: String


class MemberMetadata(Message, frozen=True, kw_only=True):
    rack_id: NullableString = None
    client_id: String
    client_host: String
    subscribed_topic_names: tuple[String, ...]


class GroupMetadata(Message, frozen=True, kw_only=True):
    epoch: Int32
    metadata_hash: Int64 = 0


class TargetAssignmentMetadata(Message, frozen=True, kw_only=True):
    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, Tag(0, since=0)] = 0


class TopicPartitions(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    partitions: tuple[Int32, ...]


class TargetAssignment(Message, frozen=True, kw_only=True):
    topic_partitions: tuple[TopicPartitions, ...]


class CurrentAssignment(Message, frozen=True, kw_only=True):
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[TopicPartitions, ...]


class InitializedTopic(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    topic_name: String
    partitions: tuple[Int32, ...]


class DeletingTopic(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    topic_name: String


class StateMetadata(Message, frozen=True, kw_only=True):
    initializing_topics: tuple[InitializedTopic, ...] = ()
    initialized_topics: tuple[InitializedTopic, ...]
    deleting_topics: tuple[DeletingTopic, ...] = ()


# ── __share_group_state ──────────────────────────────────────────────────────────────────────────────────────


class StateKey(Message, frozen=True, kw_only=True):
    group_id: String
    topic_id: Uuid
    partition: Int32


class StateBatch(Message, frozen=True, kw_only=True):
    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


class Snapshot(Message, frozen=True, kw_only=True):
    snapshot_epoch: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, Tag(0, since=0)] = -1
    create_timestamp: Int64
    write_timestamp: Int64
    state_batches: tuple[StateBatch, ...]


class Update(Message, frozen=True, kw_only=True):
    snapshot_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Annotated[Int32, Tag(0, since=0)] = -1
    state_batches: tuple[StateBatch, ...]
