"""ShareGroupDescribe (77): state and members of share groups (KIP-932)."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Bool, Int16, Int32, Message, NullableString, Request, Response, String, Uuid


class TopicPartitions(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    topic_name: String
    partitions: tuple[Int32, ...]


class Assignment(Message, frozen=True, kw_only=True):
    topic_partitions: tuple[TopicPartitions, ...]


class Member(Message, frozen=True, kw_only=True):
    member_id: String
    rack_id: NullableString = None
    member_epoch: Int32
    client_id: String
    client_host: String
    subscribed_topic_names: tuple[String, ...]
    assignment: Assignment


class DescribedGroup(Message, frozen=True, kw_only=True):
    error_code: Int16
    error_message: NullableString = None
    group_id: String
    group_state: String
    group_epoch: Int32
    assignment_epoch: Int32
    assignor_name: String
    members: tuple[Member, ...]
    authorized_operations: Int32 = -2147483648


class ShareGroupDescribeResponse(Response, frozen=True, kw_only=True):
    API = apis.SHARE_GROUP_DESCRIBE

    throttle_time_ms: Int32 = 0
    groups: tuple[DescribedGroup, ...]


class ShareGroupDescribeRequest(Request, frozen=True, kw_only=True):
    API = apis.SHARE_GROUP_DESCRIBE
    RESPONSE: ClassVar = ShareGroupDescribeResponse

    group_ids: tuple[String, ...]
    include_authorized_operations: Bool
