"""DeleteAcls (31): delete the ACLs that match filters."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int8, Int16, Int32, Message, NullableString, Request, Response, String


class DeleteAclsMatchingAcl(Message, frozen=True, kw_only=True):
    error_code: Int16
    error_message: NullableString
    resource_type: Int8
    resource_name: String
    pattern_type: Int8 = 3
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class DeleteAclsFilterResult(Message, frozen=True, kw_only=True):
    error_code: Int16
    error_message: NullableString
    matching_acls: tuple[DeleteAclsMatchingAcl, ...]


class DeleteAclsResponse(Response, frozen=True, kw_only=True):
    API = apis.DELETE_ACLS

    throttle_time_ms: Int32 = 0
    filter_results: tuple[DeleteAclsFilterResult, ...]


class DeleteAclsFilter(Message, frozen=True, kw_only=True):
    resource_type_filter: Int8
    resource_name_filter: NullableString
    pattern_type_filter: Int8 = 3
    principal_filter: NullableString
    host_filter: NullableString
    operation: Int8
    permission_type: Int8


class DeleteAclsRequest(Request, frozen=True, kw_only=True):
    API = apis.DELETE_ACLS
    RESPONSE: ClassVar = DeleteAclsResponse

    filters: tuple[DeleteAclsFilter, ...]
