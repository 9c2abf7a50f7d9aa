"""Resolves the references of schemas from the registry's state."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.registry import refusals
from ottla.registry.errors import InvalidSchema
from ottla.registry.schemas import parse
from ottla.registry.subjects import beside

if TYPE_CHECKING:
    from ottla.registry.model import Reference, Schema, Version
    from ottla.registry.schemas import Parsed, Resolved
    from ottla.registry.state import State


def with_versions(state: State, subject: str, schema: Schema) -> Schema:
    """Replace references to the latest version (-1) by references to that version."""
    if all(each.version != -1 for each in schema.references):
        return schema
    found = []
    for each in schema.references:
        version = state.version(beside(subject, each.subject), each.version)
        if version is None:
            raise refusals.invalid_schema(_missing(each))
        found.append(each._replace(version=version.version))
    return replace(schema, references=tuple(found))


def resolve(state: State, subject: str, schema: Schema) -> Resolved:
    """The direct and indirect references of a schema; a name that occurs twice counts once."""
    found: dict[str, tuple[Reference, str]] = {}
    _collect(state, subject, schema, found, set())
    return tuple(found.values())


def _collect(
    state: State, subject: str, schema: Schema, found: dict[str, tuple[Reference, str]], under_way: set[tuple[str, int]]
) -> None:
    for reference in schema.references:
        if reference.name in found:
            continue
        place = beside(subject, reference.subject)
        # A reference stays valid while its target is soft-deleted.
        version = state.version(place, reference.version, with_deleted=True)
        if version is None:
            raise InvalidSchema(_missing(reference))
        if (place, version.version) not in under_way:
            under_way.add((place, version.version))
            _collect(state, place, version.schema, found, under_way)
            found[reference.name] = reference._replace(subject=place, version=version.version), version.schema.text


def _missing(reference: Reference) -> str:
    return f"no schema for the reference {reference.name!r}: subject {reference.subject!r} version {reference.version}"


def parsed(state: State, subject: str, schema: Schema, *, is_new: bool = False) -> Parsed:
    """Parse a schema with its references. Raises a Refusal with 42201 if it is invalid."""
    try:
        return parse(schema, resolve(state, subject, schema), is_new=is_new)
    except InvalidSchema as wrong:
        raise refusals.invalid_schema(wrong) from None


def parsed_version(state: State, version: Version) -> Parsed:
    return parsed(state, version.subject, version.schema)
