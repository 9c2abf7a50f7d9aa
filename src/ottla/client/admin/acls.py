"""Administration of ACLs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.client.admin.requests import AdminRequests
from ottla.client.errors import BrokerError, broker_error, raise_for
from ottla.core.security import AclOperation, AclPermission, PatternType, ResourceType
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.describe_acls import DescribeAclsRequest

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """`Acl("User:ann", AclOperation.READ, ResourceType.TOPIC, "orders")`."""

    principal: str
    operation: AclOperation
    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType = PatternType.LITERAL
    permission: AclPermission = AclPermission.ALLOW
    host: str = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFilter:
    """None and ANY match any value; an empty filter matches every ACL."""

    principal: str | None = None
    operation: AclOperation = AclOperation.ANY
    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    """MATCH finds every ACL that applies to the resource of that name: literal, prefixed and wildcard."""
    permission: AclPermission = AclPermission.ANY
    host: str | None = None


class AclAdmin(AdminRequests):
    async def list_acls(self, wanted: AclFilter | None = None) -> list[Acl]:
        """The ACLs that match the filter, in order; without a filter, all."""
        given = wanted or AclFilter()
        request = DescribeAclsRequest(
            resource_type_filter=given.resource_type,
            resource_name_filter=given.resource_name,
            pattern_type_filter=given.pattern_type,
            principal_filter=given.principal,
            host_filter=given.host,
            operation=given.operation,
            permission_type=given.permission,
        )
        response = await self._router.ask(request)
        raise_for(response.error_code, "cannot list ACLs", response.error_message)
        return sorted(
            Acl(
                acl.principal,
                AclOperation(acl.operation),
                ResourceType(resource.resource_type),
                resource.resource_name,
                PatternType(resource.pattern_type),
                AclPermission(acl.permission_type),
                acl.host,
            )
            for resource in response.resources
            for acl in resource.acls
        )

    async def create_acls(self, acls: Iterable[Acl]) -> dict[Acl, BrokerError | None]:
        """Add ACLs; existing ones are kept. Returns an error for each that could not be added."""
        wanted = tuple(dict.fromkeys(acls))
        creations = tuple(
            AclCreation(
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                resource_pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in wanted
        )
        response = await self._ask_controller(
            CreateAclsRequest(creations=creations), lambda answer: (each.error_code for each in answer.results)
        )
        return {
            acl: broker_error(each.error_code, f"ACL of {acl.principal}", each.error_message)
            if each.error_code
            else None
            for acl, each in zip(wanted, response.results, strict=True)
        }

    async def delete_acls(self, wanted: AclFilter) -> list[Acl]:
        """Delete the ACLs that match the filter, and return them."""
        asked = DeleteAclsFilter(
            resource_type_filter=wanted.resource_type,
            resource_name_filter=wanted.resource_name,
            pattern_type_filter=wanted.pattern_type,
            principal_filter=wanted.principal,
            host_filter=wanted.host,
            operation=wanted.operation,
            permission_type=wanted.permission,
        )
        response = await self._ask_controller(
            DeleteAclsRequest(filters=(asked,)), lambda answer: (each.error_code for each in answer.filter_results)
        )
        [result] = response.filter_results
        raise_for(result.error_code, "cannot delete ACLs", result.error_message)
        return sorted(
            Acl(
                acl.principal,
                AclOperation(acl.operation),
                ResourceType(acl.resource_type),
                acl.resource_name,
                PatternType(acl.pattern_type),
                AclPermission(acl.permission_type),
                acl.host,
            )
            for acl in result.matching_acls
        )
