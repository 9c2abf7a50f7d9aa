"""SyncGroup (14): the leader sends the assignments, every member receives its own."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Bytes, Int16, Int32, Message, NullableString, Request, Response, Since, String


class SyncGroupResponse(Response, frozen=True, kw_only=True):
    API = apis.SYNC_GROUP

    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16
    protocol_type: Annotated[NullableString, Since(5)] = None
    protocol_name: Annotated[NullableString, Since(5)] = None
    assignment: Bytes


class SyncGroupRequestAssignment(Message, frozen=True, kw_only=True):
    member_id: String
    assignment: Bytes


class SyncGroupRequest(Request, frozen=True, kw_only=True):
    API = apis.SYNC_GROUP
    RESPONSE: ClassVar = SyncGroupResponse

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: Annotated[NullableString, Since(3)] = None
    protocol_type: Annotated[NullableString, Since(5)] = None
    protocol_name: Annotated[NullableString, Since(5)] = None
    assignments: tuple[SyncGroupRequestAssignment, ...]
