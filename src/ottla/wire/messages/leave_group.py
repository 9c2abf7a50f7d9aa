"""LeaveGroup (13): leave without waiting for the session to expire. Many members from version 3."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, Message, NullableString, Request, Response, Since, String, Until


class MemberResponse(Message, frozen=True, kw_only=True):
    member_id: String
    group_instance_id: NullableString
    error_code: Int16


class LeaveGroupResponse(Response, frozen=True, kw_only=True):
    API = apis.LEAVE_GROUP

    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16
    members: Annotated[tuple[MemberResponse, ...], Since(3)] = ()


class MemberIdentity(Message, frozen=True, kw_only=True):
    member_id: String
    group_instance_id: NullableString = None
    reason: Annotated[NullableString, Since(5)] = None


class LeaveGroupRequest(Request, frozen=True, kw_only=True):
    API = apis.LEAVE_GROUP
    RESPONSE: ClassVar = LeaveGroupResponse

    group_id: String
    member_id: Annotated[String, Until(2)] = ""
    members: Annotated[tuple[MemberIdentity, ...], Since(3)] = ()
