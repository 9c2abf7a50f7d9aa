"""DeleteGroups (42): delete empty groups and their offsets."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, Message, Request, Response, String


class DeletableGroupResult(Message, frozen=True, kw_only=True):
    group_id: String
    error_code: Int16


class DeleteGroupsResponse(Response, frozen=True, kw_only=True):
    API = apis.DELETE_GROUPS

    throttle_time_ms: Int32 = 0
    results: tuple[DeletableGroupResult, ...]


class DeleteGroupsRequest(Request, frozen=True, kw_only=True):
    API = apis.DELETE_GROUPS
    RESPONSE: ClassVar = DeleteGroupsResponse

    groups_names: tuple[String, ...]
