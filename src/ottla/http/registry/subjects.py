"""Subjects and their versions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from ottla.core.security import AclOperation
from ottla.registry import changes, refusals
from ottla.registry.changes import Registration
from ottla.registry.errors import Refusal
from ottla.registry.lookup import look_up
from ottla.registry.model import JSON, PROTOBUF
from ottla.registry.resolving import parsed_version
from ottla.registry.subjects import beside

if TYPE_CHECKING:
    from ottla.http.registry.calls import RegistryCall
    from ottla.registry.model import Json, Version
    from ottla.registry.state import State

_LONG_TEXT: Final = 10_000


async def list_subjects(call: RegistryCall) -> list[str]:
    state, prefix = call.state, call.prefix()
    found = state.subjects(prefix, with_deleted=call.flag("deleted") or call.flag("deletedOnly"))
    if call.flag("deletedOnly"):
        living = set(state.subjects(prefix))
        found = [each for each in found if each not in living]
    return call.page([each for each in found if call.may(AclOperation.DESCRIBE, each)])


async def look_up_schema(call: RegistryCall) -> Json:
    subject = call.subject()
    call.check(AclOperation.READ, subject)
    schema, _ = await call.schema()
    call.check_references(subject, schema)
    normalize, with_deleted = call.flag("normalize"), call.flag("deleted")

    def found(state: State) -> Version | None:
        return look_up(state, subject, schema, normalize=normalize, with_deleted=with_deleted)

    if not call.state.versions(subject, with_deleted=with_deleted):
        await call.store.refresh(is_needed=True)
    if not call.state.versions(subject, with_deleted=with_deleted):
        raise refusals.subject_not_found(subject)
    version = await call.store.compute(found)
    if version is None:
        await call.store.refresh(is_needed=True)
        version = await call.store.compute(found)
    if version is None:
        raise refusals.schema_not_found()
    return await shown(call, version)


async def delete_subject(call: RegistryCall) -> list[int]:
    subject = call.subject()
    call.check(AclOperation.DELETE, subject)
    is_permanent = call.flag("permanent")
    numbers = await call.store.change(partial(changes.delete_subject, subject=subject, is_permanent=is_permanent))
    call.note("PurgeSubject" if is_permanent else "DeleteSubject", subject)
    return numbers


async def list_versions(call: RegistryCall) -> list[int]:
    subject = call.subject()
    call.check(AclOperation.DESCRIBE, subject)
    only, as_negative = call.flag("deletedOnly"), call.flag("deletedAsNegative")
    if not await _versions(call, subject, with_deleted=only or call.flag("deleted")):
        raise refusals.subject_not_found(subject)
    found = call.state.versions(subject, with_deleted=only or as_negative or call.flag("deleted"))
    if as_negative:
        return call.page([-each.version if each.is_deleted else each.version for each in found])
    return call.page([each.version for each in found if each.is_deleted or not only])


async def _versions(call: RegistryCall, subject: str, *, with_deleted: bool) -> list[Version]:
    found = call.state.versions(subject, with_deleted=with_deleted)
    if not found:
        await call.store.refresh(is_needed=True)
        found = call.state.versions(subject, with_deleted=with_deleted)
    return found


async def find_version(call: RegistryCall) -> Version:
    subject, number = call.subject(), call.version()
    call.check(AclOperation.READ, subject)
    with_deleted = call.flag("deleted")
    version = call.state.version(subject, number, with_deleted=with_deleted)
    if version is None or number == -1:
        await call.store.refresh(is_needed=True)
        version = call.state.version(subject, number, with_deleted=with_deleted)
    if version is not None:
        return version
    if not call.state.versions(subject, with_deleted=True) or number == -1:
        raise refusals.subject_not_found(subject)
    raise refusals.version_not_found(number)


async def show_version(call: RegistryCall) -> Json:
    return await shown(call, await find_version(call))


async def show_schema_of_version(call: RegistryCall) -> Response:
    version = await find_version(call)
    return Response((await shown(call, version))["schema"])


async def shown(call: RegistryCall, version: Version) -> Json:
    """The entity in the requested format."""
    entity = version.shown() | ({"deleted": True} if version.is_deleted else {})
    wanted = call.text("format")
    if wanted:
        entity["schema"] = await call.store.compute(lambda state: parsed_version(state, version).formatted(wanted))
    if call.text("referenceFormat") == "qualified":
        entity["references"] = [
            each.shown() | {"subject": beside(version.subject, each.subject)} for each in version.schema.references
        ]
    return entity


async def register(call: RegistryCall) -> Json:
    subject = call.subject()
    call.check(AclOperation.WRITE, subject)
    if not subject:
        raise refusals.invalid_subject(subject)
    schema, given = await call.schema()
    call.check_references(subject, schema)
    wanted = Registration(
        subject=subject,
        schema=schema,
        id=_whole(given, "id", -1),
        version=_whole(given, "version", 0),
        normalize=call.flag("normalize"),
        force=call.flag("force"),
    )
    plan = partial(changes.register, wanted=wanted)
    if schema.type == JSON or len(schema.text) > _LONG_TEXT:
        # The check may take seconds, during which other changes must not wait.
        await call.store.rehearse(plan)
    version = await call.store.change(plan, is_repeatable=True)
    call.note("RegisterSchema", subject)
    entity = await shown(call, version)
    del entity["subject"]
    if schema.type == PROTOBUF and " " not in schema.text.strip():
        # A client that sends descriptors caches the text in the response, and would read it as a descriptor.
        del entity["schema"]
    return entity


def _whole(given: Json, name: str, default: int) -> int:
    value: Any = given.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise Refusal(422, f"{name} must be an integer")
    return value


async def delete_version(call: RegistryCall) -> int:
    subject, number = call.subject(), call.version()
    call.check(AclOperation.DELETE, subject)
    is_permanent = call.flag("permanent")
    plan = partial(changes.delete_version, subject=subject, number=number, is_permanent=is_permanent)
    deleted = await call.store.change(plan)
    call.note("PurgeSchemaVersion" if is_permanent else "DeleteSchemaVersion", f"{subject}/{deleted}")
    return deleted


async def list_referring(call: RegistryCall) -> list[int]:
    version = await find_version(call)
    found = call.state.referring(version.subject, version.version, with_deleted=call.flag("deleted"))
    return call.page(sorted({each.id for each in found}))


async def latest_with_metadata(call: RegistryCall) -> Json:
    subject = call.subject()
    call.check(AclOperation.READ, subject)
    query = call.query_pairs()
    wanted = dict(zip(query.get("key", []), query.get("value", []), strict=False))
    for version in reversed(await _versions(call, subject, with_deleted=call.flag("deleted"))):
        properties = (version.schema.metadata or {}).get("properties", {})
        if wanted.items() <= properties.items() and version.schema.metadata is not None:
            return await shown(call, version)
    raise refusals.schema_not_found()
