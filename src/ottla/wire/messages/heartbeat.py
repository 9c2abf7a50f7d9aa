"""Heartbeat (12): keeps a member's session alive; the response tells whether the group is rebalancing."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, NullableString, Request, Response, Since, String


class HeartbeatResponse(Response, frozen=True, kw_only=True):
    API = apis.HEARTBEAT

    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16


class HeartbeatRequest(Request, frozen=True, kw_only=True):
    API = apis.HEARTBEAT
    RESPONSE: ClassVar = HeartbeatResponse

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: Annotated[NullableString, Since(3)] = None
