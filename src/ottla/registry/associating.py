"""Changes of associations: the records to write, and the response."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.registry import changes, records, refusals
from ottla.registry.association_requests import Deletion
from ottla.registry.associations import STRONG, WEAK, Association, AssociationKey, latest_resource, selected
from ottla.registry.changes import Planned, Registration, check_writable
from ottla.registry.errors import Refusal
from ottla.registry.lookup import look_up
from ottla.registry.model import Json
from ottla.registry.records import Record
from ottla.registry.subjects import beside, in_context, qualified

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.registry.association_requests import Operations, Resource, Wanted, Wish
    from ottla.registry.state import State

Permit = Callable[[str], None]
"""Raises a refusal if the sender may not change a subject."""


def associate(state: State, wanted: Wanted, permit: Permit) -> Planned[Json]:
    """Create associations, or also update them; with the schemas that the request contains."""
    known = _known(state, wanted)
    wishes = [_completed(state, wanted, each, known.get(each.kind)) for each in wanted.wishes]
    for wish in wishes:
        permit(wish.subject)
        check_writable(state, wish.subject)
    kept = [each for each in wishes if not _is_unchanged(state, wanted, each, known.get(each.kind))]
    _check_lifecycles(state, wanted, wishes)
    for wish in wishes:
        _check_subject(state, wish, wishes, known.get(wish.kind))
    scratch, written, schemas = state.fork(), list[Record](), dict[str, Json]()
    for wish in wishes:
        if wish.schema is not None:
            registration = Registration(subject=wish.subject, schema=wish.schema, normalize=wish.normalize)
            version = _apply(scratch, changes.register(scratch, registration), written)
            schemas[wish.kind] = version.shown()
    if wanted.is_dry_run:
        return Planned(wanted.shown([], {}))
    found = [_association(wanted, each, known.get(each.kind)) for each in kept]
    written += (records.association_record(each) for each in found)
    return Planned(wanted.shown(found, schemas), tuple(written))


def _known(state: State, wanted: Wanted) -> dict[str, Association]:
    kinds = {each.kind for each in wanted.wishes}
    found = state.associations(resource_id=wanted.resource_id) if wanted.resource_id else []
    if not found and wanted.is_create and wanted.is_dry_run and not wanted.resource_id:
        found = latest_resource(state.associations(resource=wanted.resource, namespace=wanted.namespace))
    return {each.kind: each for each in selected(found, resource_type=wanted.resource_type, kinds=kinds)}


def _completed(state: State, wanted: Wanted, wish: Wish, old: Association | None) -> Wish:
    """With its subject, and with the defaults of an association that does not exist yet."""
    if old is None and not wanted.is_create:
        wish = wish.with_defaults(is_create=False)
    subject = wish.subject
    if subject:
        name = in_context(wanted.context, subject) if wanted.context else qualified(subject)
        alias = (state.config(name) or {}).get("alias")
        subject = beside(name, alias) if alias else name
    elif old is not None:
        subject = old.subject
    elif wish.lifecycle == STRONG:
        subject = wanted.default_subject(wish.kind)
    else:
        raise refusals.invalid_association("subject", "must be provided for WEAK associations")
    found = replace(wish, subject=subject)
    _check_kind(wanted, found, old)
    return found


def _check_kind(wanted: Wanted, wish: Wish, old: Association | None) -> None:
    """Strong associations are frozen and have the default subject; weak ones are not and have not."""
    lifecycle = wish.lifecycle or (old.lifecycle if old is not None else None)
    if lifecycle is None:
        raise refusals.invalid_association("lifecycle", "lifecycle must be set")
    default = wanted.default_subject(wish.kind)
    if lifecycle == WEAK and wish.schema is not None:
        raise refusals.invalid_association("lifecycle", "cannot be WEAK when schema is provided")
    if lifecycle == WEAK and wish.subject == default:
        raise refusals.invalid_association("subject", f"WEAK associations cannot use subject '{default}'")
    is_frozen = old.is_frozen if old is not None else bool(wish.is_frozen)
    asked = is_frozen if wish.is_frozen is None else wish.is_frozen
    if asked != (lifecycle == STRONG):
        raise refusals.invalid_association(
            "frozen", f"association with lifecycle of {lifecycle} cannot be frozen={str(asked).lower()}"
        )
    if is_frozen and wish.subject != default:
        raise refusals.invalid_association("subject", f"frozen associations must use subject '{default}'")


def _is_unchanged(state: State, wanted: Wanted, wish: Wish, old: Association | None) -> bool:
    """Raises a refusal if it may not be created, or changed so."""
    if old is None:
        _check_new(state, wanted, wish)
        return False
    is_same = (
        old.subject == wish.subject
        and wish.lifecycle in (None, old.lifecycle)
        and wish.is_frozen in (None, old.is_frozen)
    )
    if is_same and (not wanted.is_create or wish.schema is None or _is_registered(state, wish)):
        return True
    if wanted.is_create:
        raise refusals.association_exists(old.kind, old.key.resource)
    if wish.lifecycle is None and wish.schema is None:
        raise refusals.invalid_association("lifecycle", "at least lifecycle or schema must be provided for update")
    if old.subject != wish.subject:
        raise refusals.invalid_association("subject", f"cannot be changed from '{old.subject}' to '{wish.subject}'")
    if wish.is_frozen not in (None, old.is_frozen):
        raise refusals.invalid_association("frozen", "frozen attribute of association cannot be changed")
    return False


def _check_new(state: State, wanted: Wanted, wish: Wish) -> None:
    if state.mode_in_scope(wish.subject) == "IMPORT":
        return
    if not wanted.is_create and wish.lifecycle == STRONG:
        raise refusals.invalid_association(
            "lifecycle",
            "cannot be STRONG when creating an association; STRONG associations must be created with the topic",
        )
    if not wish.is_frozen:
        return
    if wanted.is_create and wish.schema is None:
        raise refusals.invalid_association("schema", "schema must be provided when creating a frozen association")
    latest = state.version(wish.subject, -1)
    if latest is not None and (latest.version != 1 or not _is_registered(state, wish)):
        raise refusals.invalid_association(
            "frozen", "cannot create a frozen association when schemas already exist in the subject"
        )


def _is_registered(state: State, wish: Wish) -> bool:
    return wish.schema is not None and look_up(state, wish.subject, wish.schema, normalize=wish.normalize) is not None


def _check_lifecycles(state: State, wanted: Wanted, wishes: Sequence[Wish]) -> None:
    """The key and the value of a topic have the same lifecycle."""
    if wanted.resource_id:
        found = state.associations(resource_id=wanted.resource_id)
    else:
        found = latest_resource(state.associations(resource=wanted.resource, namespace=wanted.namespace))
    lifecycles = {each.kind: each.lifecycle for each in selected(found, resource_type=wanted.resource_type)}
    lifecycles |= {each.kind: each.lifecycle for each in wishes if each.lifecycle is not None}
    if len(set(lifecycles.values())) > 1:
        shown = ", ".join(f"{kind}={lifecycle}" for kind, lifecycle in lifecycles.items())
        raise refusals.invalid_association(
            "lifecycle", f"all associations for a resource must have the same lifecycle, but got {shown}"
        )


def _check_subject(state: State, wish: Wish, wishes: Sequence[Wish], old: Association | None) -> None:
    if wish.schema is not None and state.mode_in_scope(wish.subject) == "IMPORT":
        raise refusals.invalid_association("schema", f"cannot be provided while '{wish.subject}' is in IMPORT mode")
    if wish.schema is None and state.version(wish.subject, -1) is None:
        raise refusals.no_active_version(wish.subject)
    others = [each for each in state.associations(subject=wish.subject) if old is None or each.key != old.key]
    lifecycle = wish.lifecycle or (old.lifecycle if old is not None else None)
    if lifecycle == WEAK and selected(others, lifecycle=STRONG):
        raise refusals.strong_association_exists(wish.subject)
    if lifecycle == STRONG and others:
        raise refusals.subject_associated(wish.subject)
    if lifecycle == STRONG and (_is_referenced(state, wish.subject) or _is_referenced_by(wishes, wish.subject)):
        raise refusals.referenced(wish.subject, 1)


def _is_referenced(state: State, subject: str) -> bool:
    versions = state.versions(subject, with_deleted=True)
    return any(state.referring(subject, each.version, with_deleted=True) for each in versions)


def _is_referenced_by(wishes: Sequence[Wish], subject: str) -> bool:
    return any(
        beside(wish.subject, reference.subject) == subject
        for wish in wishes
        if wish.schema is not None
        for reference in wish.schema.references
    )


def _association(wanted: Wanted, wish: Wish, old: Association | None) -> Association:
    if old is not None:
        frozen = old.is_frozen if wish.is_frozen is None else wish.is_frozen
        return replace(old, lifecycle=wish.lifecycle or old.lifecycle, is_frozen=frozen)
    key = AssociationKey(wanted.resource, wanted.namespace, wanted.resource_type, wish.kind, wish.subject)
    return Association(
        key=key,
        guid=str(uuid.uuid4()),
        resource_id=wanted.resource_id,
        lifecycle=wish.lifecycle or WEAK,
        is_frozen=bool(wish.is_frozen),
    )


def _apply(scratch: State, planned: Planned[changes.T], written: list[Record]) -> changes.T:
    """Let a change be part of a larger one."""
    for each in planned.records:
        change = records.decoded(each.key, each.value)
        if change is not None:
            scratch.apply(change)
    written += planned.records
    return planned.answer


# Deleting


def dissociate(state: State, resource: Resource, wanted: Deletion, permit: Permit) -> Planned[list[str]]:
    """Delete associations, and subjects that belong to them if that is asked for; the answer is the subjects."""
    found = selected(state_of(state, resource), kinds=wanted.kinds)
    for each in found:
        permit(each.subject)
        check_writable(state, each.subject)
        if each.is_frozen and not wanted.is_cascading:
            raise refusals.association_frozen(each.kind, each.subject)
    subjects = [each.subject for each in found]
    if wanted.is_dry_run:
        return Planned(subjects)
    scratch, written = state.fork(), list[Record]()
    for each in found:
        _apply(scratch, Planned(None, (records.association_tombstone(each.key),)), written)
        if wanted.is_cascading and each.lifecycle == STRONG and scratch.mode_in_scope(each.subject) != "IMPORT":
            _delete_subject(scratch, each.subject, written)
    return Planned(subjects, tuple(written))


def _delete_subject(scratch: State, subject: str, written: list[Record]) -> None:
    if scratch.versions(subject):
        _apply(scratch, changes.delete_subject(scratch, subject, is_permanent=False), written)
    if scratch.versions(subject, with_deleted=True):
        _apply(scratch, changes.delete_subject(scratch, subject, is_permanent=True), written)


# Batches


def mutate(
    state: State, requests: Sequence[Json], read: Callable[[Json], Operations], permit: Permit
) -> Planned[list[Json]]:
    """Each request takes effect as a whole, or not at all."""
    scratch, written, results = state, list[Record](), list[Json]()
    for each in requests:
        trial, made = scratch.fork(), list[Record]()
        try:
            results.append({"result": _operated(trial, read(each), permit, made)})
        except Refusal as refused:
            results.append({"error": {"error_code": refused.code, "message": refused.message}})
            continue
        scratch = trial
        written += made
    return Planned(results, tuple(written))


def _operated(scratch: State, operations: Operations, permit: Permit, written: list[Record]) -> Json:
    schemas: dict[str, Json] = {}
    for step in operations.steps:
        if isinstance(step, Deletion):
            deleting = replace(step, is_dry_run=operations.is_dry_run)
            _apply(scratch, dissociate(scratch, operations, deleting, permit), written)
            continue
        answer = _apply(scratch, associate(scratch, step, permit), written)
        made = answer.get("associations", ())
        schemas |= {each["associationType"]: each["schema"] for each in made if "schema" in each}
    found = [] if operations.is_dry_run else state_of(scratch, operations)
    return operations.shown(found, schemas)


def state_of(state: State, resource: Resource) -> list[Association]:
    return selected(state.associations(resource_id=resource.resource_id), resource_type=resource.resource_type)
