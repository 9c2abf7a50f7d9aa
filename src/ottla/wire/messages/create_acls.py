"""CreateAcls (30): add ACLs."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int8, Int16, Int32, Message, NullableString, Request, Response, String


class AclCreationResult(Message, frozen=True, kw_only=True):
    error_code: Int16
    error_message: NullableString


class CreateAclsResponse(Response, frozen=True, kw_only=True):
    API = apis.CREATE_ACLS

    throttle_time_ms: Int32 = 0
    results: tuple[AclCreationResult, ...]


class AclCreation(Message, frozen=True, kw_only=True):
    resource_type: Int8
    resource_name: String
    resource_pattern_type: Int8 = 3
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class CreateAclsRequest(Request, frozen=True, kw_only=True):
    API = apis.CREATE_ACLS
    RESPONSE: ClassVar = CreateAclsResponse

    creations: tuple[AclCreation, ...]
