"""The record formats of `__consumer_offsets`, from Kafka's GroupMetadataKey.json and related files."""

from typing import Annotated

from ottla.wire.declare import (
    NO_UUID,
    Bytes,
    Int32,
    Int64,
    Message,
    NullableString,
    Since,
    String,
    Tag,
    Until,
    Uuid,
)


class OffsetKey(Message, frozen=True, kw_only=True):
    group: String
    topic: String
    partition: Int32


class GroupKey(Message, frozen=True, kw_only=True):
    group: String


class OffsetCommitValue(Message, frozen=True, kw_only=True):
    offset: Int64
    leader_epoch: Annotated[Int32, Since(3)] = -1
    metadata: String = ""
    commit_timestamp: Int64
    expire_timestamp: Annotated[Int64, Since(1), Until(1)] = -1
    topic_id: Annotated[Uuid, Tag(0, since=4)] = NO_UUID


class MemberMetadata(Message, frozen=True, kw_only=True):
    member_id: String
    group_instance_id: Annotated[NullableString, Since(3)] = None
    client_id: String
    client_host: String
    rebalance_timeout: Annotated[Int32, Since(1)] = -1
    session_timeout: Int32
    subscription: Bytes
    assignment: Bytes


class GroupMetadataValue(Message, frozen=True, kw_only=True):
    protocol_type: String
    generation: Int32
    protocol: NullableString
    leader: NullableString
    current_state_timestamp: Annotated[Int64, Since(2)] = -1
    members: tuple[MemberMetadata, ...]
