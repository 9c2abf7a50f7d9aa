"""ShareGroupHeartbeat (76): join, stay in and leave a share group (KIP-932)."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, Message, NullableString, Request, Response, String, Uuid


class TopicPartitions(Message, frozen=True, kw_only=True):
    topic_id: Uuid
    partitions: tuple[Int32, ...]


class Assignment(Message, frozen=True, kw_only=True):
    topic_partitions: tuple[TopicPartitions, ...]


class ShareGroupHeartbeatResponse(Response, frozen=True, kw_only=True):
    API = apis.SHARE_GROUP_HEARTBEAT

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: NullableString = None
    member_id: NullableString = None
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: Assignment | None = None


class ShareGroupHeartbeatRequest(Request, frozen=True, kw_only=True):
    API = apis.SHARE_GROUP_HEARTBEAT
    RESPONSE: ClassVar = ShareGroupHeartbeatResponse

    group_id: String
    member_id: String
    member_epoch: Int32
    rack_id: NullableString = None
    subscribed_topic_names: tuple[String, ...] | None = None
