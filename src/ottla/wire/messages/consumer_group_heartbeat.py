"""ConsumerGroupHeartbeat (68): join, stay in and leave a consumer group (KIP-848)."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, Message, NullableString, Request, Response, Since, String, Uuid


class TopicPartitions(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    partitions: tuple[Int32, ...]


class Assignment(Message, frozen=True, kw_only=True):
    topic_partitions: tuple[TopicPartitions, ...]


class ConsumerGroupHeartbeatResponse(Response, frozen=True, kw_only=True):
    API = apis.CONSUMER_GROUP_HEARTBEAT

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: NullableString = None
    member_id: NullableString = None
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: Assignment | None = None


class ConsumerGroupHeartbeatRequest(Request, frozen=True, kw_only=True):
    API = apis.CONSUMER_GROUP_HEARTBEAT
    RESPONSE: ClassVar = ConsumerGroupHeartbeatResponse

    group_id: String
    member_id: String
    member_epoch: Int32
    instance_id: NullableString = None
    rack_id: NullableString = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: tuple[String, ...] | None = None
    subscribed_topic_regex: Annotated[NullableString, Since(1)] = None
    server_assignor: NullableString = None
    topic_partitions: tuple[TopicPartitions, ...] | None = None
