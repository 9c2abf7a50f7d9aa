"""Schemas by id and GUID."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from ottla.core.security import AclOperation
from ottla.http.registry.subjects import shown
from ottla.registry import refusals
from ottla.registry.associations import LIFECYCLES, selected
from ottla.registry.errors import Refusal
from ottla.registry.model import TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.http.registry.calls import RegistryCall
    from ottla.registry.associations import Association
    from ottla.registry.model import Json, Version

_NONE: Final = "NONE"
"""The lifecycle of subjects without an association, in filters."""


async def list_types(call: RegistryCall) -> list[str]:  # noqa: ARG001 - as every handler
    return list(TYPES)


async def list_schemas(call: RegistryCall) -> list[Json]:
    state, prefix = call.state, call.prefix()
    with_deleted, latest_only, rule_type = call.flag("deleted"), call.flag("latestOnly"), call.text("ruleType")
    subjects = state.subjects(prefix, with_deleted=with_deleted)
    aliases = state.aliases(prefix) if call.flag("aliases") else {}
    if aliases:
        subjects = sorted({*subjects, *aliases})
    chosen = _by_association(call)
    found: list[Json] = []
    for subject in subjects:
        more = chosen(subject)
        if more is None or not call.may(AclOperation.READ, subject):
            continue
        if subject in aliases:
            more = more | {"aliases": aliases[subject]}
        versions = state.versions(subject, with_deleted=with_deleted)
        found += (
            each.shown() | more
            for each in (versions[-1:] if latest_only else versions)
            if not rule_type or rule_type in _rule_types(each)
        )
    return call.page(found)


def _by_association(call: RegistryCall) -> Callable[[str], Json | None]:
    """The filter of subjects by their associations: what is shown of a subject, or None to leave it out."""
    kinds, lifecycles = (call.query_pairs().get(name, []) for name in ("associationType", "lifecycle"))
    if unknown := set(lifecycles) - {*LIFECYCLES, _NONE}:
        raise Refusal(400, f"lifecycle must be STRONG, WEAK or NONE, got {unknown.pop()!r}")
    resource_type = call.text("resourceType") or None
    if not kinds and not lifecycles and resource_type is None:
        return lambda _: {}
    by_subject: dict[str, list[Association]] = {}
    for each in selected(call.state.associations(), resource_type=resource_type, kinds=kinds):
        by_subject.setdefault(each.subject, []).append(each)

    def chosen(subject: str) -> Json | None:
        found = by_subject.get(subject, [])
        if not found:
            return {} if _NONE in lifecycles else None
        shown = [each.shown() for each in found if not lifecycles or each.lifecycle in lifecycles]
        return {"associations": shown} if shown else None

    return chosen


def _rule_types(version: Version) -> set[str]:
    rules = (version.schema.rule_set or {}).values()
    return {rule.get("type", "") for group in rules if isinstance(group, list) for rule in group}


async def _with_id(call: RegistryCall, number: int) -> list[Version]:
    """The readable versions with this id; the subject of the request first."""
    for is_second in (False, True):
        if is_second:
            await call.store.refresh(is_needed=True)
        for context in call.contexts_to_search():
            found = call.readable(call.state.with_id(number, context))
            if found:
                wanted = call.text("subject")
                return sorted(found, key=lambda each: (each.subject != wanted, each.subject, each.version))
    return []


async def show_schema(call: RegistryCall) -> Json:
    number = call.id()
    found = await _with_id(call, number)
    if not found:
        raise refusals.schema_not_found(number)
    entity = await shown(call, found[0])
    if call.flag("fetchMaxId"):
        entity["maxId"] = call.state.largest_id(call.contexts_to_search()[0])
    dropped = ("id",) if call.text("subject") else ("id", "subject", "version")
    return {key: value for key, value in entity.items() if key not in (*dropped, "deleted")}


async def show_schema_text(call: RegistryCall) -> Response:
    return Response((await show_schema(call))["schema"])


async def list_subjects_of_id(call: RegistryCall) -> list[str]:
    found = await _living(call)
    return call.page(sorted({each.subject for each in found}))


async def list_versions_of_id(call: RegistryCall) -> list[Json]:
    found = await _living(call)
    places = sorted({(each.subject, each.version) for each in found})
    return call.page([{"subject": subject, "version": version} for subject, version in places])


async def _living(call: RegistryCall) -> list[Version]:
    found = await _with_id(call, call.id())
    if not found:
        raise refusals.schema_not_found()
    wanted = call.text("subject")
    is_named = bool(wanted) and not wanted.startswith(":")
    with_deleted = call.flag("deleted")
    return [
        each
        for each in found
        if (with_deleted or not each.is_deleted) and (not is_named or each.subject.endswith(wanted))
    ]


def _fingerprint(call: RegistryCall) -> bytes:
    given = call.path("guid")
    try:
        return uuid.UUID(given).bytes
    except ValueError:
        raise refusals.schema_not_found(given) from None


async def _with_guid(call: RegistryCall) -> list[tuple[str, int]]:
    fingerprint = _fingerprint(call)
    for is_second in (False, True):
        if is_second:
            await call.store.refresh(is_needed=True)
        ids = ((context, call.state.with_guid(fingerprint, context)) for context in call.state.contexts())
        found = [(context, number) for context, number in ids if number is not None]
        seen = [each for each in found if call.readable(call.state.with_id(each[1], each[0]))]
        if seen:
            return seen
    raise refusals.schema_not_found(call.path("guid"))


async def show_schema_of_guid(call: RegistryCall) -> Json:
    context, number = (await _with_guid(call))[0]
    entity = await shown(call, call.readable(call.state.with_id(number, context))[0])
    return {key: value for key, value in entity.items() if key not in ("id", "subject", "version", "deleted")}


async def list_ids_of_guid(call: RegistryCall) -> list[Json]:
    return [{"context": context, "id": number} for context, number in await _with_guid(call)]
