"""The record formats of consumer groups, from Kafka's ConsumerGroupMetadataKey.json and related files."""

from typing import Annotated, Final, TypeAlias

from ottla.wire.declare import Bytes, Int8, Int32, Int64, Message, NullableString, String, Tag, Uuid


class EpochKey(Message, frozen=True, kw_only=True):
    group_id: String


class EpochValue(Message, frozen=True, kw_only=True):
    epoch: Int32
    metadata_hash: Annotated[Int64, Tag(0, since=0)] = 0


class MemberKey(Message, frozen=True, kw_only=True):
    group_id: String
    member_id: String


class ClassicProtocol(Message, frozen=True, kw_only=True):
    name: String
    metadata: Bytes


class ClassicMemberMetadata(Message, frozen=True, kw_only=True):
    session_timeout_ms: Int32
    supported_protocols: tuple[ClassicProtocol, ...]


NOT_SAID: Final = ClassicMemberMetadata(session_timeout_ms=0, supported_protocols=())
"""Kafka's default for a missing field; so for a member with the consumer protocol it is written explicitly as null."""


class MemberValue(Message, frozen=True, kw_only=True):
    instance_id: NullableString = None
    rack_id: NullableString = None
    client_id: String
    client_host: String
    subscribed_topic_names: tuple[String, ...]
    subscribed_topic_regex: NullableString = None
    rebalance_timeout_ms: Int32 = -1
    server_assignor: NullableString = None
    classic_member_metadata: Annotated[ClassicMemberMetadata | None, Tag(0, since=0)] = NOT_SAID


class TargetEpochKey(Message, frozen=True, kw_only=True):
    group_id: String


class TargetEpochValue(Message, frozen=True, kw_only=True):
    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, Tag(0, since=0)] = 0


class TargetKey(Message, frozen=True, kw_only=True):
    group_id: String
    member_id: String


class TargetPartitions(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    partitions: tuple[Int32, ...]


class TargetValue(Message, frozen=True, kw_only=True):
    topic_partitions: tuple[TargetPartitions, ...]


class CurrentKey(Message, frozen=True, kw_only=True):
    group_id: String
    member_id: String


class CurrentPartitions(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    partitions: tuple[Int32, ...]
    assignment_epochs: Annotated[tuple[Int32, ...] | None, Tag(0, since=0)] = ()


class CurrentValue(Message, frozen=True, kw_only=True):
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[CurrentPartitions, ...]
    partitions_pending_revocation: tuple[CurrentPartitions, ...]


class RegexKey(Message, frozen=True, kw_only=True):
    group_id: String
    regular_expression: String


class RegexValue(Message, frozen=True, kw_only=True):
    topics: tuple[String, ...]
    version: Int64
    timestamp: Int64


class SubscriptionKey(Message, frozen=True, kw_only=True):
    """The topics of a group as stored by Kafka 4.0. Later releases store a hash of them in the epoch record."""

    group_id: String


Key: TypeAlias = EpochKey | SubscriptionKey | MemberKey | TargetEpochKey | TargetKey | CurrentKey | RegexKey
Value: TypeAlias = EpochValue | MemberValue | TargetEpochValue | TargetValue | CurrentValue | RegexValue
