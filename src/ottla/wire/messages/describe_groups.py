"""DescribeGroups (15): state and members of classic groups."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import (
    Bool,
    Bytes,
    Int16,
    Int32,
    Message,
    NullableString,
    Request,
    Response,
    Since,
    String,
)


class DescribedGroupMember(Message, frozen=True, kw_only=True):
    member_id: String
    group_instance_id: Annotated[NullableString, Since(4)] = None
    client_id: String
    client_host: String
    member_metadata: Bytes
    member_assignment: Bytes


class DescribedGroup(Message, frozen=True, kw_only=True):
    error_code: Int16
    error_message: Annotated[NullableString, Since(6)] = None
    group_id: String
    group_state: String
    protocol_type: String
    protocol_data: String
    members: tuple[DescribedGroupMember, ...]
    authorized_operations: Annotated[Int32, Since(3)] = -2147483648


class DescribeGroupsResponse(Response, frozen=True, kw_only=True):
    API = apis.DESCRIBE_GROUPS

    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    groups: tuple[DescribedGroup, ...]


class DescribeGroupsRequest(Request, frozen=True, kw_only=True):
    API = apis.DESCRIBE_GROUPS
    RESPONSE: ClassVar = DescribeGroupsResponse

    groups: tuple[String, ...]
    include_authorized_operations: Annotated[Bool, Since(3)] = False
