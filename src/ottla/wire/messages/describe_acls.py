"""DescribeAcls (29): the ACLs that match a filter."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int8, Int16, Int32, Message, NullableString, Request, Response, String


class AclDescription(Message, frozen=True, kw_only=True):
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class DescribeAclsResource(Message, frozen=True, kw_only=True):
    resource_type: Int8
    resource_name: String
    pattern_type: Int8 = 3
    acls: tuple[AclDescription, ...]


class DescribeAclsResponse(Response, frozen=True, kw_only=True):
    API = apis.DESCRIBE_ACLS

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: NullableString
    resources: tuple[DescribeAclsResource, ...]


class DescribeAclsRequest(Request, frozen=True, kw_only=True):
    API = apis.DESCRIBE_ACLS
    RESPONSE: ClassVar = DescribeAclsResponse

    resource_type_filter: Int8
    resource_name_filter: NullableString
    pattern_type_filter: Int8 = 3
    principal_filter: NullableString
    host_filter: NullableString
    operation: Int8
    permission_type: Int8
