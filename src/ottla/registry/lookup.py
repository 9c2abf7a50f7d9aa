"""Finding a schema under a subject, and checking compatibility."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ottla.registry import refusals
from ottla.registry.errors import InvalidSchema, Refusal
from ottla.registry.given import merged_metadata, merged_rule_sets, metadata_in
from ottla.registry.model import AVRO
from ottla.registry.resolving import parsed, parsed_version, with_versions
from ottla.registry.schemas import canonicalized, incompatibilities

if TYPE_CHECKING:
    from ottla.registry.model import Json, Schema, Version
    from ottla.registry.schemas import Parsed
    from ottla.registry.state import State

VERSION_PROPERTY: Final = "confluent:version"
_RESERVED: Final = "confluent:reserved"


def canonical_schema(
    state: State, subject: str, schema: Schema, *, normalize: bool, is_new: bool
) -> tuple[Schema, Parsed]:
    schema = with_versions(state, subject, schema)
    found = parsed(state, subject, schema, is_new=is_new)
    is_normalized = normalize or bool(state.config_in_scope(subject).get("normalize"))
    return canonicalized(schema, found, normalize=is_normalized), found


def look_up(
    state: State, subject: str, schema: Schema, *, normalize: bool = False, with_deleted: bool = False
) -> Version | None:
    """The version of a schema under a subject, even if its metadata and rules come from the latest version."""
    found = _look_up_once(state, subject, schema, normalize=normalize, with_deleted=with_deleted)
    latest = state.version(subject, -1)
    if found is not None or latest is None:
        return found
    completed = completed_from(state.config_in_scope(subject), schema, latest)
    if completed == schema:
        return None
    return _look_up_once(state, subject, completed, normalize=normalize, with_deleted=with_deleted)


def _look_up_once(state: State, subject: str, schema: Schema, *, normalize: bool, with_deleted: bool) -> Version | None:
    canonical, _ = canonical_schema(state, subject, schema, normalize=normalize, is_new=False)
    _, version = state.with_schema(subject, canonical)
    if version is not None and (with_deleted or not version.is_deleted):
        return version
    for each in reversed(state.versions(subject, with_deleted=with_deleted)):
        if is_equivalent(state, canonical, each):
            return each
    return None


def is_equivalent(state: State, schema: Schema, version: Version) -> bool:
    """Whether two schemas differ only in `confluent:version`, or in inlined references."""
    other = version.schema
    if schema.type != other.type or schema.rule_set != other.rule_set:
        return False
    if schema.metadata != other.metadata and schema.metadata != _without_version(other.metadata):
        return False
    if schema.references == other.references:
        return schema.text == other.text
    if schema.references or schema.type != AVRO:
        return False
    try:
        return parsed_version(state, version).formatted("resolved") == schema.text
    except Refusal:
        return False


def _without_version(metadata: Json | None) -> Json | None:
    if metadata is None or VERSION_PROPERTY not in metadata.get("properties", {}):
        return metadata
    properties = {key: value for key, value in metadata["properties"].items() if key != VERSION_PROPERTY}
    return metadata_in(metadata | {"properties": properties}) or None


def completed_from(config: Json, schema: Schema, latest: Version | None, version: int | None = None) -> Schema:
    """The schema with missing metadata and rules taken from the latest version, and with the config's defaults and
    overrides.
    """
    before = None if latest is None else latest.schema
    metadata = schema.metadata if schema.metadata is not None or before is None else before.metadata
    rule_set = schema.rule_set if schema.rule_set is not None or before is None else before.rule_set
    metadata = merged_metadata(merged_metadata(config.get("defaultMetadata"), metadata), config.get("overrideMetadata"))
    rule_set = merged_rule_sets(merged_rule_sets(config.get("defaultRuleSet"), rule_set), config.get("overrideRuleSet"))
    if version is not None and metadata is not None and VERSION_PROPERTY in metadata.get("properties", {}):
        metadata = merged_metadata(metadata, {"properties": {VERSION_PROPERTY: str(version)}})
    return replace(schema, metadata=metadata, rule_set=rule_set)


def messages_against(state: State, subject: str, schema: Schema, new: Parsed, previous: list[Version]) -> list[str]:
    """Why a schema is incompatible with earlier versions, under the subject's config; empty if it is compatible."""
    config = state.config_in_scope(subject)
    found = _reserved_fields(schema, new, previous) if config.get("validateFields") else []
    group = config.get("compatibilityGroup")
    if group:
        wanted = _property(schema, group)
        previous = [each for each in previous if _property(each.schema, group) == wanted]
    level = config["compatibilityLevel"]
    try:
        earlier = [parsed_version(state, each) for each in _needed(level, previous)]
        found += incompatibilities(level, new, earlier, is_lenient=config.get("compatibilityPolicy") == "LENIENT")
    except InvalidSchema as wrong:
        raise refusals.invalid_schema(wrong) from None
    if found:
        is_checked = str(bool(config.get("validateFields"))).lower()
        found.append(f"{{validateFields: '{is_checked}', compatibility: '{level}'}}")
    return found


def _needed(level: str, previous: list[Version]) -> list[Version]:
    if level == "NONE":
        return []
    return previous if level.endswith("_TRANSITIVE") else previous[-1:]


def _reserved_fields(schema: Schema, new: Parsed, previous: list[Version]) -> list[str]:
    reserved = _reserved(schema)
    before = _reserved(previous[-1].schema) if previous else set()
    found = [f"the new schema has the reserved field {name!r} removed" for name in sorted(before - reserved)]
    taken = [name for name in sorted(reserved) if new.has_field(name)]
    return [*found, *(f"the field {name!r} conflicts with a reserved field" for name in taken)]


def _reserved(schema: Schema) -> set[str]:
    listed = _property(schema, _RESERVED) or ""
    return {name.strip() for name in listed.split(",") if name.strip()}


def _property(schema: Schema, name: str) -> str | None:
    found: str | None = (schema.metadata or {}).get("properties", {}).get(name)
    return found
