"""Roles: named sets of ACLs, and their members.

Roles are not stored separately: the ACLs of the principal `Role:x` are its rules, and ALLOW ALL on the USER `Role:x`
makes a principal a member of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.interfaces.in_process_requests import Refused, raise_refusal
from ottla.core.errors import ErrorCode
from ottla.core.security import ROLE_TYPE, AclOperation, AclPermission, PatternType, ResourceType
from ottla.http.framework.endpoints import Endpoint
from ottla.http.framework.models import Done, Struct
from ottla.http.resources.acls import Acl, all_acls
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.http.framework.endpoints import Call

_USER: Final = ResourceType.USER.name


class Role(Struct, frozen=True, kw_only=True):
    name: str
    members: list[str]
    """Principals: users, groups of tokens, or other roles."""
    rules: list[Acl]


class RoleList(Struct, frozen=True, kw_only=True):
    roles: list[Role]


async def list_roles(call: Call) -> RoleList:
    return RoleList(roles=roles_in(await all_acls(call)))


def roles_in(acls: Iterable[Acl]) -> list[Role]:
    rules: dict[str, list[Acl]] = {}
    members: dict[str, list[str]] = {}
    for acl in acls:
        if acl.principal.startswith(ROLE_TYPE):
            rules.setdefault(acl.principal.removeprefix(ROLE_TYPE), []).append(acl)
        if _is_membership(acl):
            members.setdefault(acl.resource_name.removeprefix(ROLE_TYPE), []).append(acl.principal)
    return [
        # A role's membership in another role is not one of its rules.
        Role(
            name=name,
            members=sorted(members.get(name, ())),
            rules=[acl for acl in rules.get(name, ()) if not _is_membership(acl)],
        )
        for name in sorted({*rules, *members})
    ]


def _is_membership(acl: Acl) -> bool:
    return (acl.resource_type, acl.operation, acl.permission, acl.pattern_type) == (
        _USER,
        AclOperation.ALL.name,
        AclPermission.ALLOW.name,
        PatternType.LITERAL.name,
    ) and acl.resource_name.startswith(ROLE_TYPE)


async def add_member(call: Call) -> Done:
    principal = call.path("principal")
    if not all(principal.partition(":")):
        raise Refused(ErrorCode.INVALID_REQUEST, f"a member must be a principal such as User:ann, got {principal!r}")
    creation = AclCreation(
        resource_type=ResourceType.USER,
        resource_name=ROLE_TYPE + call.path("name"),
        resource_pattern_type=PatternType.LITERAL,
        principal=principal,
        host="*",
        operation=AclOperation.ALL,
        permission_type=AclPermission.ALLOW,
    )
    [result] = (await call.ask(CreateAclsRequest(creations=(creation,)))).results
    raise_refusal(result.error_code, result.error_message)
    return Done()


async def remove_member(call: Call) -> Done:
    name, principal = call.path("name"), call.path("principal")
    if not await _delete(call, _memberships(name, principal)):
        raise Refused(ErrorCode.RESOURCE_NOT_FOUND, f"{principal} is not a member of role {name}")
    return Done()


async def delete_role(call: Call) -> Done:
    name = call.path("name")
    if not await _delete(call, _memberships(name, None), _acls(principal=ROLE_TYPE + name)):
        raise Refused(ErrorCode.RESOURCE_NOT_FOUND, f"there is no role {name}")
    return Done()


async def _delete(call: Call, *filters: DeleteAclsFilter) -> int:
    deleted = 0
    for result in (await call.ask(DeleteAclsRequest(filters=filters))).filter_results:
        raise_refusal(result.error_code, result.error_message)
        deleted += len(result.matching_acls)
    return deleted


def _memberships(name: str, principal: str | None) -> DeleteAclsFilter:
    return _acls(
        resource_type=ResourceType.USER,
        resource_name=ROLE_TYPE + name,
        pattern_type=PatternType.LITERAL,
        operation=AclOperation.ALL,
        principal=principal,
    )


def _acls(
    *,
    principal: str | None,
    resource_type: int = ResourceType.ANY,
    resource_name: str | None = None,
    pattern_type: int = PatternType.ANY,
    operation: int = AclOperation.ANY,
) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=resource_type,
        resource_name_filter=resource_name,
        pattern_type_filter=pattern_type,
        principal_filter=principal,
        host_filter=None,
        operation=operation,
        permission_type=AclPermission.ANY,
    )


_MEMBER: Final = "/v1/roles/{name}/members/{principal}"

ENDPOINTS: Final = (
    Endpoint("GET", "/v1/roles", list_roles, "Roles with their members and rules", answer=RoleList),
    Endpoint("PUT", _MEMBER, add_member, "Make a principal a member of a role", answer=Done),
    Endpoint("DELETE", _MEMBER, remove_member, "Take a role away from a principal", answer=Done),
    Endpoint("DELETE", "/v1/roles/{name}", delete_role, "Delete a role: its rules and memberships", answer=Done),
)
