"""ConsumerGroupDescribe (69): state and members of consumer groups (KIP-848)."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import (
    Bool,
    Int8,
    Int16,
    Int32,
    Message,
    NullableString,
    Request,
    Response,
    Since,
    String,
    Uuid,
)


class TopicPartitions(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    topic_name: String
    partitions: tuple[Int32, ...]


class Assignment(Message, frozen=True, kw_only=True):
    topic_partitions: tuple[TopicPartitions, ...]


class Member(Message, frozen=True, kw_only=True):
    member_id: String
    instance_id: NullableString = None
    rack_id: NullableString = None
    member_epoch: Int32
    client_id: String
    client_host: String
    subscribed_topic_names: tuple[String, ...]
    subscribed_topic_regex: NullableString = None
    assignment: Assignment
    target_assignment: Assignment
    member_type: Annotated[Int8, Since(1)] = -1


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


class ConsumerGroupDescribeResponse(Response, frozen=True, kw_only=True):
    API = apis.CONSUMER_GROUP_DESCRIBE

    throttle_time_ms: Int32 = 0
    groups: tuple[DescribedGroup, ...]


class ConsumerGroupDescribeRequest(Request, frozen=True, kw_only=True):
    API = apis.CONSUMER_GROUP_DESCRIBE
    RESPONSE: ClassVar = ConsumerGroupDescribeResponse

    group_ids: tuple[String, ...]
    include_authorized_operations: Bool
