"""Changes of subjects: the records to write, and the response."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from ottla.registry import records, refusals
from ottla.registry.associations import STRONG, selected
from ottla.registry.errors import Refusal
from ottla.registry.given import merged_metadata
from ottla.registry.lookup import VERSION_PROPERTY, canonical_schema, completed_from, is_equivalent, messages_against
from ottla.registry.model import Schema, Version
from ottla.registry.subjects import DEFAULT_CONTEXT, beside, parse_subject

if TYPE_CHECKING:
    from ottla.registry.records import Record
    from ottla.registry.state import State

T = TypeVar("T")
_LARGEST_ID = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Planned(Generic[T]):
    """The records to write, and the response once they are written."""

    answer: T
    records: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    subject: str
    schema: Schema
    id: int = -1
    """The id given by an import; -1 for the next one."""
    version: int = 0
    """The version: 0 for the next one or an existing equal schema, -1 for the next one."""
    normalize: bool = False
    force: bool = False


def check_writable(state: State, subject: str | None) -> None:
    if state.mode_in_scope(subject) in ("READONLY", "READONLY_OVERRIDE"):
        raise refusals.not_permitted(f"Subject {subject} is in read-only mode")


def register(state: State, wanted: Registration) -> Planned[Version]:
    subject = wanted.subject
    is_import = _check_mode(state, wanted)
    versions = state.versions(subject, with_deleted=True)
    living = [each for each in versions if not each.is_deleted]
    number = max((each.version for each in versions), default=0) + 1
    schema = wanted.schema if is_import else _completed(state, wanted, living, number)
    canonical, parsed = canonical_schema(state, subject, schema, normalize=wanted.normalize, is_new=wanted.id < 0)
    _check_references(state, subject, canonical)
    known_id, known = state.with_schema(subject, canonical)
    has_id = known_id is not None and wanted.id in (-1, known_id)
    if wanted.version == 0:
        if has_id and known is not None and not known.is_deleted:
            return Planned(known)
        for each in reversed(living):
            if wanted.id in (-1, each.id) and is_equivalent(state, canonical, each):
                return Planned(each)
    if not is_import and not wanted.force:
        found = messages_against(state, subject, canonical, parsed, living)
        if found:
            raise refusals.incompatible(found, subject)
    if wanted.version > 0 and wanted.version != number and not is_import:
        raise refusals.invalid_schema("Version is not one more than previous version")
    chosen = (known_id if has_id else None) if wanted.id < 0 else wanted.id
    version = Version(
        subject,
        wanted.version if wanted.version > 0 else number,
        _id_for(state, subject, canonical, chosen),
        canonical,
    )
    return Planned(version, _written(state, version, versions))


def _check_references(state: State, subject: str, schema: Schema) -> None:
    for _, name, _ in schema.references:
        if selected(state.associations(subject=beside(subject, name)), lifecycle=STRONG):
            raise refusals.not_permitted(f"Subject '{name}' has a strong association and cannot be referenced")


def _check_mode(state: State, wanted: Registration) -> bool:
    """Whether the schema is imported, that is with its id and without a compatibility check."""
    check_writable(state, wanted.subject)
    mode = state.mode_in_scope(wanted.subject)
    if wanted.id >= 0 and mode not in ("IMPORT", "FORWARD"):
        raise refusals.not_permitted(f"Subject {wanted.subject} is not in import mode")
    if wanted.id < 0 and mode != "READWRITE":
        raise refusals.not_permitted(f"Subject {wanted.subject} is not in read-write mode")
    if wanted.id > _LARGEST_ID:
        raise refusals.invalid_schema(f"the id {wanted.id} is out of range")
    return mode in ("IMPORT", "FORWARD")


def _completed(state: State, wanted: Registration, living: list[Version], number: int) -> Schema:
    schema, latest = wanted.schema, living[-1] if living else None
    if not schema.text.strip():
        if latest is None:
            raise refusals.invalid_schema("Empty schema")
        before = latest.schema
        schema = replace(schema, text=before.text, type=before.type, references=before.references)
    schema = completed_from(state.config_in_scope(wanted.subject), schema, latest, number)
    if wanted.version != 0:
        metadata = merged_metadata(schema.metadata or {}, {"properties": {VERSION_PROPERTY: str(number)}})
        schema = replace(schema, metadata=metadata)
    return schema


def _id_for(state: State, subject: str, schema: Schema, chosen: int | None) -> int:
    if chosen is None:
        found = state.next_id(subject)
        if found > _LARGEST_ID:
            raise Refusal(50001, "all schema ids are taken")
        return found
    context = parse_subject(subject).context
    if any(each.schema != schema for each in state.with_id(chosen, context)):
        raise refusals.not_permitted(f"Overwrite new schema with id {chosen} in context {context} is not permitted.")
    return chosen


def _written(state: State, version: Version, versions: list[Version]) -> tuple[Record, ...]:
    written = []
    context = parse_subject(version.subject).context
    if context != DEFAULT_CONTEXT and not state.knows_context(context):
        written.append(records.context_record(context))
    for each in versions:
        is_replaced = each.is_deleted and each.id == version.id and each.version < version.version
        if is_replaced and not state.referring(each.subject, each.version, with_deleted=True):
            written.append(records.schema_tombstone(each.subject, each.version))
    return (*written, records.schema_record(version))


# Deleting


def delete_version(state: State, subject: str, number: int, *, is_permanent: bool) -> Planned[int]:
    version = state.version(subject, number, with_deleted=is_permanent)
    if version is None:
        if state.version(subject, number, with_deleted=True) is not None and number != -1:
            raise refusals.version_deleted(subject, number)
        if not state.versions(subject, with_deleted=True):
            raise refusals.subject_not_found(subject)
        raise refusals.version_not_found(number)
    check_writable(state, subject)
    is_only = [each.version for each in state.versions(subject)] == [version.version]
    if is_only and not is_permanent and state.associations(subject=subject):
        raise refusals.no_active_version(subject)
    if state.referring(subject, version.version, with_deleted=is_permanent):
        raise refusals.referenced(subject, version.version)
    if not is_permanent:
        return Planned(version.version, (records.schema_record(replace(version, is_deleted=True)),))
    if not version.is_deleted:
        raise refusals.version_not_deleted(subject, version.version)
    is_last = len(state.versions(subject, with_deleted=True)) == 1
    tombstone = records.schema_tombstone(subject, version.version)
    return Planned(version.version, (*_kept_ids(state), tombstone, *(_settings(state, subject) if is_last else ())))


def delete_subject(state: State, subject: str, *, is_permanent: bool) -> Planned[list[int]]:
    versions = state.versions(subject, with_deleted=is_permanent)
    if not versions:
        if state.versions(subject, with_deleted=True):
            raise refusals.subject_deleted(subject)
        raise refusals.subject_not_found(subject)
    check_writable(state, subject)
    if state.associations(subject=subject):
        raise refusals.subject_associated(subject)
    for each in versions:
        others = state.referring(subject, each.version, with_deleted=is_permanent)
        if any(other.subject != subject for other in others):
            raise refusals.referenced(subject, each.version)
        if is_permanent and not each.is_deleted:
            raise refusals.subject_not_deleted(subject)
    numbers = [each.version for each in versions]
    if not is_permanent:
        return Planned(numbers, (records.delete_subject(subject, numbers[-1]),))
    tombstones = (records.schema_tombstone(subject, number) for number in reversed(numbers))
    return Planned(numbers, (*_kept_ids(state), *tombstones, *_settings(state, subject)))


def _kept_ids(state: State) -> tuple[Record, ...]:
    """Ids of permanently deleted versions are never reused, not even after compaction and a restart."""
    return (records.noop(state.largest_ids()),)


def _settings(state: State, subject: str) -> list[Record]:
    found = []
    if state.mode(subject) is not None:
        found.append(records.mode_record(subject, None))
    if state.config(subject) is not None:
        found.append(records.config_record(subject, None))
    return found


def delete_context(state: State, context: str) -> Planned[None]:
    name = context.strip(":") or DEFAULT_CONTEXT
    if name == DEFAULT_CONTEXT:
        raise refusals.not_permitted("the default context cannot be deleted")
    if state.subjects(f":{name}:", with_deleted=True):
        raise refusals.context_not_empty(name)
    return Planned(None, (records.context_record(name, is_deleted=True),))
