"""JoinGroup (11): join the next generation of a group. `metadata` is opaque to the broker."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import (
    Bool,
    Bytes,
    Int16,
    Int32,
    Message,
    NullableSince,
    NullableString,
    Request,
    Response,
    Since,
    String,
)


class JoinGroupResponseMember(Message, frozen=True, kw_only=True):
    member_id: String
    group_instance_id: Annotated[NullableString, Since(5)] = None
    metadata: Bytes


class JoinGroupResponse(Response, frozen=True, kw_only=True):
    API = apis.JOIN_GROUP

    throttle_time_ms: Annotated[Int32, Since(2)] = 0
    error_code: Int16
    generation_id: Int32 = -1
    protocol_type: Annotated[NullableString, Since(7)] = None
    protocol_name: Annotated[NullableString, NullableSince(7)]
    leader: String
    skip_assignment: Annotated[Bool, Since(9)] = False
    member_id: String
    members: tuple[JoinGroupResponseMember, ...]


class JoinGroupRequestProtocol(Message, frozen=True, kw_only=True):
    name: String
    metadata: Bytes


class JoinGroupRequest(Request, frozen=True, kw_only=True):
    API = apis.JOIN_GROUP
    RESPONSE: ClassVar = JoinGroupResponse

    group_id: String
    session_timeout_ms: Int32
    rebalance_timeout_ms: Annotated[Int32, Since(1)] = -1
    member_id: String
    group_instance_id: Annotated[NullableString, Since(5)] = None
    protocol_type: String
    protocols: tuple[JoinGroupRequestProtocol, ...]
    reason: Annotated[NullableString, Since(8)] = None
