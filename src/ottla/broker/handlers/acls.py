"""DescribeAcls (29), CreateAcls (30), DeleteAcls (31). Rejected without `security.acls`, as by Kafka."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ottla.broker.requests.turns import Turns
from ottla.core.errors import ApiError, ErrorCode, InvalidRequest
from ottla.storage.catalog.acl_filter import AclFilter, matching
from ottla.storage.catalog.entries import Acl, AclOperation, AclPermission, PatternType, ResourceType
from ottla.storage.catalog.rules import check_acl_filter, check_new_acl
from ottla.wire.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from ottla.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ottla.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context

_MOST_NAME_BYTES: Final = 32767


class _SecurityDisabled(ApiError):
    code = ErrorCode.SECURITY_DISABLED


def describe_acls(broker: Broker, request: DescribeAclsRequest, _context: Context) -> DescribeAclsResponse:
    try:
        _check_is_on(broker)
        wanted = _filter(request, request.resource_type_filter, request.pattern_type_filter)
        check_acl_filter(wanted)
    except ApiError as refused:
        return DescribeAclsResponse(error_code=refused.code, error_message=str(refused), resources=())
    found = matching(broker.catalog.view.acls, wanted)
    return DescribeAclsResponse(error_code=ErrorCode.NONE, error_message=None, resources=_by_resource(found))


def _by_resource(acls: Iterable[Acl]) -> tuple[DescribeAclsResource, ...]:
    grouped: dict[tuple[ResourceType, str, PatternType], list[Acl]] = {}
    for acl in sorted(acls, key=lambda one: (one.resource_type, one.resource_name, one.principal, one.operation)):
        grouped.setdefault((acl.resource_type, acl.resource_name, acl.pattern_type), []).append(acl)
    return tuple(
        DescribeAclsResource(
            resource_type=kind,
            resource_name=name,
            pattern_type=pattern,
            acls=tuple(
                AclDescription(
                    principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission
                )
                for acl in of_it
            ),
        )
        for (kind, name, pattern), of_it in grouped.items()
    )


async def create_acls(broker: Broker, request: CreateAclsRequest, _context: Context) -> CreateAclsResponse:
    """Each entry separately: an invalid one does not affect the others."""
    turns = Turns()
    results = []
    for one in request.creations:
        results.append(await _created(broker, one))
        if turns.are_over():
            await asyncio.sleep(0)
    return CreateAclsResponse(results=tuple(results))


async def _created(broker: Broker, wanted: AclCreation) -> AclCreationResult:
    try:
        _check_is_on(broker)
        acl = Acl(
            ResourceType(wanted.resource_type),
            wanted.resource_name,
            PatternType(wanted.resource_pattern_type),
            _principal(wanted.principal),
            wanted.host,
            AclOperation(wanted.operation),
            AclPermission(wanted.permission_type),
        )
        check_new_acl(acl)
        await broker.administration.change_catalog(lambda: broker.catalog.add_acls((acl,)))
    except ApiError as refused:
        return AclCreationResult(error_code=refused.code, error_message=str(refused))
    return AclCreationResult(error_code=ErrorCode.NONE, error_message=None)


async def delete_acls(broker: Broker, request: DeleteAclsRequest, _context: Context) -> DeleteAclsResponse:
    turns = Turns()
    results = []
    for one in request.filters:
        results.append(await _deleted(broker, one))
        if turns.are_over():
            await asyncio.sleep(0)
    return DeleteAclsResponse(filter_results=tuple(results))


async def _deleted(broker: Broker, wanted: DeleteAclsFilter) -> DeleteAclsFilterResult:
    try:
        _check_is_on(broker)
        doomed = _filter(wanted, wanted.resource_type_filter, wanted.pattern_type_filter)
        gone = await broker.administration.change_catalog(lambda: broker.catalog.delete_acls(doomed))
    except ApiError as refused:
        return DeleteAclsFilterResult(error_code=refused.code, error_message=str(refused), matching_acls=())
    matched = tuple(
        DeleteAclsMatchingAcl(
            error_code=ErrorCode.NONE,
            error_message=None,
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission,
        )
        for acl in gone
    )
    return DeleteAclsFilterResult(error_code=ErrorCode.NONE, error_message=None, matching_acls=matched)


def _check_is_on(broker: Broker) -> None:
    if broker.security.authorizer is None:
        raise _SecurityDisabled("ACLs are disabled: set security.acls = true first.")


def _filter(given: DescribeAclsRequest | DeleteAclsFilter, resource_type: int, pattern_type: int) -> AclFilter:
    return AclFilter(
        resource_type=ResourceType(resource_type),
        resource_name=given.resource_name_filter,
        pattern_type=PatternType(pattern_type),
        principal=given.principal_filter,
        host=given.host_filter,
        operation=AclOperation(given.operation),
        permission=AclPermission(given.permission_type),
    )


def _principal(text: str) -> str:
    kind, colon, name = text.partition(":")
    if not (colon and kind and name) or len(text.encode("utf-8", "surrogatepass")) > _MOST_NAME_BYTES:
        raise InvalidRequest(f"Could not parse principal from `{text[:100]}` (use e.g. User:ann).")
    return text
