"""ACLs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.core.security import AclOperation, AclPermission, PatternType, ResourceType
from ottla.http.framework.endpoints import Endpoint
from ottla.http.framework.models import RequestStruct, Struct
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.describe_acls import DescribeAclsRequest

if TYPE_CHECKING:
    from ottla.http.framework.endpoints import Call

Operation = Literal[
    "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS",
]  # fmt: skip
Kind = Literal["TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"]
Pattern = Literal["LITERAL", "PREFIXED"]
Permission = Literal["ALLOW", "DENY"]


class Acl(Struct, frozen=True, kw_only=True):
    principal: str
    operation: str
    resource_type: str
    resource_name: str
    pattern_type: str
    permission: str
    host: str


class AclList(Struct, frozen=True, kw_only=True):
    acls: list[Acl]


class NewAcl(RequestStruct, frozen=True, kw_only=True):
    principal: str
    """Such as User:ann, Group:sales or Role:analyst; User:* is all users."""
    operation: Operation
    resource_type: Kind
    resource_name: str
    """* is everything; the cluster is kafka-cluster. ALL on the USER Role:x makes a principal a member of role x."""
    pattern_type: Pattern = "LITERAL"
    permission: Permission = "ALLOW"
    host: str = "*"


class AclQuery(RequestStruct, frozen=True, kw_only=True):
    principal: str | None = None
    operation: Operation | None = None
    resource_type: Kind | None = None
    resource_name: str | None = None
    pattern_type: Pattern | None = None
    permission: Permission | None = None
    host: str | None = None

    def codes(self) -> dict[str, int]:
        return {
            "operation": AclOperation[self.operation or "ANY"],
            "permission_type": AclPermission[self.permission or "ANY"],
        }


async def list_acls(call: Call) -> AclList:
    return AclList(acls=await _matching(call, call.query(AclQuery)))


async def all_acls(call: Call) -> list[Acl]:
    return await _matching(call, AclQuery())


async def _matching(call: Call, query: AclQuery) -> list[Acl]:
    request = DescribeAclsRequest(
        resource_type_filter=ResourceType[query.resource_type or "ANY"],
        resource_name_filter=query.resource_name,
        pattern_type_filter=PatternType[query.pattern_type or "ANY"],
        principal_filter=query.principal,
        host_filter=query.host,
        **query.codes(),
    )
    answer = await call.ask(request)
    raise_refusal(answer.error_code, answer.error_message)
    return [
        Acl(
            principal=acl.principal,
            operation=AclOperation(acl.operation).name,
            resource_type=ResourceType(resource.resource_type).name,
            resource_name=resource.resource_name,
            pattern_type=PatternType(resource.pattern_type).name,
            permission=AclPermission(acl.permission_type).name,
            host=acl.host,
        )
        for resource in answer.resources
        for acl in resource.acls
    ]


async def create_acl(call: Call) -> NewAcl:
    given = await call.body(NewAcl)
    creation = AclCreation(
        resource_type=ResourceType[given.resource_type],
        resource_name=given.resource_name,
        resource_pattern_type=PatternType[given.pattern_type],
        principal=given.principal,
        host=given.host,
        operation=AclOperation[given.operation],
        permission_type=AclPermission[given.permission],
    )
    [result] = (await call.ask(CreateAclsRequest(creations=(creation,)))).results
    raise_refusal(result.error_code, result.error_message)
    return given


class DeletedAcls(Struct, frozen=True, kw_only=True):
    deleted: int


async def delete_acls(call: Call) -> DeletedAcls:
    query = call.query(AclQuery)
    wanted = DeleteAclsFilter(
        resource_type_filter=ResourceType[query.resource_type or "ANY"],
        resource_name_filter=query.resource_name,
        pattern_type_filter=PatternType[query.pattern_type or "ANY"],
        principal_filter=query.principal,
        host_filter=query.host,
        **query.codes(),
    )
    [result] = (await call.ask(DeleteAclsRequest(filters=(wanted,)))).filter_results
    raise_refusal(result.error_code, result.error_message)
    return DeletedAcls(deleted=len(result.matching_acls))


ENDPOINTS: Final = (
    Endpoint("GET", "/v1/acls", list_acls, "List ACLs, optionally filtered", query=AclQuery, answer=AclList),
    Endpoint("POST", "/v1/acls", create_acl, "Add an ACL", body=NewAcl, answer=NewAcl, status=201),
    Endpoint("DELETE", "/v1/acls", delete_acls, "Delete the matching ACLs", query=AclQuery, answer=DeletedAcls),
)
