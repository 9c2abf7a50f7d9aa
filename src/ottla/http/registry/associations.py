"""Associations of topics with subjects."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from ottla.core.security import AclOperation
from ottla.registry import associating, refusals
from ottla.registry.association_requests import (
    Deletion,
    Resource,
    operations_in,
    question_in,
    requests_in,
    wanted_in,
)
from ottla.registry.associations import LIFECYCLES, TOPIC, selected
from ottla.registry.errors import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.http.registry.calls import RegistryCall
    from ottla.registry.association_requests import Wanted
    from ottla.registry.associations import Association
    from ottla.registry.model import Json

_ANY = "-"
_MULTI_STATUS = 207


async def list_by_subject(call: RegistryCall) -> list[Json]:
    subject = call.subject()
    call.check(AclOperation.READ, subject)
    return _listed(call, call.state.associations(subject=subject))


async def list_by_name(call: RegistryCall) -> list[Json]:
    name, namespace = call.path("resourceName"), call.path("resourceNamespace")
    found = call.state.associations(
        resource="" if name == _ANY else name, namespace="" if namespace == _ANY else namespace
    )
    return _listed(call, found)


async def list_by_id(call: RegistryCall) -> list[Json]:
    return _listed(call, call.state.associations(resource_id=call.path("resourceId")))


def _listed(call: RegistryCall, found: list[Association]) -> list[Json]:
    lifecycle = call.text("lifecycle") or None
    if lifecycle not in (None, *LIFECYCLES):
        raise Refusal(400, f"lifecycle must be STRONG or WEAK, got {lifecycle!r}")
    kinds = call.query_pairs().get("associationType", [])
    wanted = selected(found, resource_type=call.text("resourceType") or TOPIC, kinds=kinds, lifecycle=lifecycle)
    return call.page([each.shown() for each in wanted if call.may(AclOperation.READ, each.subject)])


async def create(call: RegistryCall) -> Json:
    return await _associated(call, await call.json(), is_create=True)


async def create_or_update(call: RegistryCall) -> Json:
    given, identifier = await call.json(), call.path("resourceId")
    if given.setdefault("resourceId", identifier) != identifier:
        raise refusals.invalid_association("resourceId", "must be that of the path")
    return await _associated(call, given, is_create=False)


async def _associated(call: RegistryCall, given: Json, *, is_create: bool) -> Json:
    wanted = wanted_in(given, is_create=is_create, is_dry_run=call.flag("dryRun"), context=_context(call))
    _check_references(call, wanted)
    plan = partial(associating.associate, wanted=wanted, permit=_permit(call, AclOperation.WRITE))
    answer = await call.store.change(plan)
    if not wanted.is_dry_run:
        call.note("AssociateSubjects", f"{wanted.namespace}/{wanted.resource}")
    return answer


def _context(call: RegistryCall) -> str:
    return call.context or call.text("context")


def _check_references(call: RegistryCall, wanted: Wanted) -> None:
    for wish in wanted.wishes:
        if wish.schema is not None:
            call.check_references(wish.subject or wanted.default_subject(wish.kind), wish.schema)


def _permit(call: RegistryCall, operation: AclOperation) -> Callable[[str], None]:
    def permit(subject: str) -> None:
        if not call.may(operation, subject):
            raise Refusal(40301, f"not allowed: {operation.name} on subject {subject}")

    return permit


async def delete(call: RegistryCall) -> Response:
    identifier = call.path("resourceId")
    resource = Resource(
        resource="", namespace="", resource_id=identifier, resource_type=call.text("resourceType") or TOPIC
    )
    wanted = Deletion(
        kinds=tuple(call.query_pairs().get("associationType", ())),
        is_cascading=call.flag("cascadeLifecycle"),
        is_dry_run=call.flag("dryRun"),
    )
    permit = _permit(call, AclOperation.DELETE)
    found = await call.store.change(partial(associating.dissociate, resource=resource, wanted=wanted, permit=permit))
    if not found:
        raise refusals.association_not_found(identifier)
    if not wanted.is_dry_run:
        call.note("DissociateSubjects", identifier)
    return Response(status_code=204)


async def batch_get(call: RegistryCall) -> Response:
    results = []
    for each in requests_in(await call.json()):
        try:
            results.append({"result": _found(call, each)})
        except Refusal as refused:
            results.append({"error": {"error_code": refused.code, "message": refused.message}})
    return _multi_status(results)


def _found(call: RegistryCall, given: Json) -> Json:
    asked = question_in(given)
    if asked.resource_id:
        found = call.state.associations(resource_id=asked.resource_id)
    else:
        found = call.state.associations(resource=asked.resource, namespace=asked.namespace)
    found = selected(found, resource_type=asked.resource_type, kinds=asked.kinds, lifecycle=asked.lifecycle)
    found = [each for each in found if call.may(AclOperation.READ, each.subject)]
    schemas = {}
    for each in found if call.flag("includeSchemas") else ():
        latest = call.state.version(each.subject, -1)
        if latest is not None:
            schemas[each.kind] = latest.shown()
    first = found[0] if found else None
    resource = Resource(
        resource=asked.resource or (first.key.resource if first else ""),
        namespace=asked.namespace or (first.key.namespace if first else ""),
        resource_id=asked.resource_id or (first.resource_id if first else ""),
        resource_type=asked.resource_type,
    )
    return resource.shown(found, schemas)


async def batch_mutate(call: RegistryCall) -> Response:
    requests = requests_in(await call.json())
    read = partial(operations_in, is_dry_run=call.flag("dryRun"), context=_context(call))
    permit = _permit(call, AclOperation.WRITE)
    results = await call.store.change(partial(associating.mutate, requests=requests, read=read, permit=permit))
    if not call.flag("dryRun"):
        call.note("AssociateSubjects", f"{len(requests)} requests")
    return _multi_status(results)


def _multi_status(results: list[Json]) -> Response:
    return Response(msgspec.json.encode({"results": results}), _MULTI_STATUS)
