"""ListGroups (16): the groups this broker coordinates, optionally by state and type."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, Message, Request, Response, Since, String


class ListedGroup(Message, frozen=True, kw_only=True):
    group_id: String
    protocol_type: String
    group_state: Annotated[String, Since(4)] = ""
    group_type: Annotated[String, Since(5)] = ""


class ListGroupsResponse(Response, frozen=True, kw_only=True):
    API = apis.LIST_GROUPS

    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16
    groups: tuple[ListedGroup, ...]


class ListGroupsRequest(Request, frozen=True, kw_only=True):
    API = apis.LIST_GROUPS
    RESPONSE: ClassVar = ListGroupsResponse

    states_filter: Annotated[tuple[String, ...], Since(4)] = ()
    types_filter: Annotated[tuple[String, ...], Since(5)] = ()
