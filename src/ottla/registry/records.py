"""Records of the `_schemas` topic, byte for byte as Confluent's registry writes them."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from ottla.registry.associations import Association, AssociationKey
from ottla.registry.errors import InvalidSchema, Refusal
from ottla.registry.foreign import in_our_layout
from ottla.registry.given import metadata_in, references_in, rule_set_in
from ottla.registry.model import AVRO, Json, Schema, Version

_SCHEMA_MAGIC: Final = 1
_TENANT: Final = "default"
_LARGEST: Final = "largestIds"
_CONFIG_KEYS: Final = (
    "alias", "aliasForDeks", "normalize", "validateFields", "validateNewSchemas", "validateRules", "compatibilityLevel",
    "compatibilityPolicy", "compatibilityGroup", "defaultMetadata", "overrideMetadata", "defaultRuleSet",
    "overrideRuleSet",
)  # fmt: skip


class Record(NamedTuple):
    key: bytes
    value: bytes | None


class Change(NamedTuple):
    """A decoded record. Without a value it is a tombstone."""

    type: str
    subject: str | None
    version: int = 0
    value: Any = None


# Writing


def noop(largest_ids: dict[str, int] | None = None) -> Record:
    """A no-op record. Confluent's registry ignores its value; Ottla stores the ids of permanently deleted versions
    there.
    """
    return Record(_encoded({"keytype": "NOOP", "magic": 0}), _encoded({_LARGEST: largest_ids}) if largest_ids else None)


def schema_record(version: Version) -> Record:
    schema = version.schema
    value: Json = {"subject": version.subject, "version": version.version, "id": version.id}
    if version.md5:
        value["md5"] = version.md5
    value["schemaType"] = schema.type
    if schema.references:
        value["references"] = [each.shown() for each in schema.references]
    # An empty object is written, since it is part of the fingerprint.
    if schema.metadata is not None:
        value["metadata"] = schema.metadata
    if schema.rule_set is not None:
        value["ruleSet"] = schema.rule_set
    value |= {"schema": schema.text, "deleted": version.is_deleted}
    return Record(_schema_key(version.subject, version.version), _encoded(value))


def schema_tombstone(subject: str, version: int) -> Record:
    return Record(_schema_key(subject, version), None)


def config_record(subject: str | None, config: Json | None) -> Record:
    """The record of a config; None deletes the config."""
    value = None
    if config is not None:
        shown = {key: config[key] for key in _CONFIG_KEYS if config.get(key) is not None}
        value = _encoded(({} if subject is None else {"subject": subject}) | shown)
    return Record(_key("CONFIG", subject), value)


def mode_record(subject: str | None, mode: str | None) -> Record:
    value = None if mode is None else _encoded(({} if subject is None else {"subject": subject}) | {"mode": mode})
    return Record(_key("MODE", subject), value)


def delete_subject(subject: str, version: int) -> Record:
    return Record(_key("DELETE_SUBJECT", subject), _encoded({"subject": subject, "version": version}))


def clear_subject(subject: str | None) -> Record:
    return Record(_key("CLEAR_SUBJECT", subject), _encoded({} if subject is None else {"subject": subject}))


def context_record(context: str, *, is_deleted: bool = False) -> Record:
    place = {"tenant": _TENANT, "context": context}
    return Record(_encoded({"keytype": "CONTEXT", **place, "magic": 0}), None if is_deleted else _encoded(place))


def association_record(association: Association) -> Record:
    key = association.key
    value = {
        "guid": association.guid,
        **_place(key),
        "resourceId": association.resource_id,
        "resourceType": key.resource_type,
        "associationType": key.kind,
        "subject": key.subject,
        "lifecycle": association.lifecycle,
        "frozen": association.is_frozen,
    }
    return Record(_association_key(key), _encoded(value))


def association_tombstone(key: AssociationKey) -> Record:
    return Record(_association_key(key), None)


def _association_key(key: AssociationKey) -> bytes:
    kinds = {"resourceType": key.resource_type, "associationType": key.kind, "subject": key.subject}
    return _encoded({"keytype": "ASSOC", **_place(key), **kinds, "magic": 0})


def _place(key: AssociationKey) -> Json:
    return {"tenant": _TENANT, "resourceName": key.resource, "resourceNamespace": key.namespace}


def _schema_key(subject: str, version: int) -> bytes:
    return _encoded({"keytype": "SCHEMA", "subject": subject, "version": version, "magic": _SCHEMA_MAGIC})


def _key(kind: str, subject: str | None) -> bytes:
    return _encoded({"keytype": kind, "subject": subject, "magic": 0})


def _encoded(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


# Reading


def decoded(key: bytes | None, value: bytes | None, timestamp_ms: int | None = None) -> Change | None:
    """The change made by a record; None for a record that a registry ignores. Raises InvalidSchema if it is
    malformed.
    """
    try:
        given = json.loads(key or b"null")
        content = json.loads(value) if value else None  # Karapace writes empty tombstones
        return _association_change(given, content, timestamp_ms) or _change(given, content)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, Refusal) as wrong:
        raise InvalidSchema(f"malformed record: {(key or b'')[:200]!r}: {wrong}") from None


def _change(key: Json, value: Json | None) -> Change | None:
    kind, subject = key["keytype"], key.get("subject")
    if kind == "NOOP":
        return Change(kind, None, value=None if value is None else value.get(_LARGEST))
    if kind == "SCHEMA":
        if key["magic"] not in (0, 1):
            raise ValueError(f"unknown magic byte {key['magic']}")
        version = None if value is None else _version(value)
        return Change(kind, subject, int(key["version"]), version)
    if kind == "CONTEXT":
        return Change(kind, key["context"], value=value)
    if kind == "DELETE_SUBJECT":
        return None if value is None else Change(kind, value.get("subject") or subject, int(value["version"]))
    if kind == "CLEAR_SUBJECT":
        return None if value is None else Change(kind, value.get("subject") or subject)
    if kind == "CONFIG":
        return Change(kind, subject, value=None if value is None else _config(value))
    if kind == "MODE":
        return Change(kind, subject, value=None if value is None else value.get("mode"))
    return None


def _association_change(given: Json, value: Json | None, timestamp_ms: int | None) -> Change | None:
    if given["keytype"] != "ASSOC":
        return None
    names = ("resourceName", "resourceNamespace", "resourceType", "associationType", "subject")
    key = AssociationKey(*(given[name] for name in names))
    if value is None:
        return Change("ASSOC", key.subject, value=(key, None))
    found = Association(
        key=key,
        guid=value["guid"],
        resource_id=value["resourceId"],
        lifecycle=value["lifecycle"],
        is_frozen=bool(value.get("frozen", False)),
        created_ms=value.get("createTs") or timestamp_ms,
        updated_ms=timestamp_ms,
    )
    return Change("ASSOC", key.subject, value=(key, found))


def _version(value: Json) -> Version:
    schema = Schema(
        text=value["schema"],
        type=value.get("schemaType") or AVRO,
        references=references_in(value.get("references")),
        metadata=metadata_in(value.get("metadata")),
        rule_set=rule_set_in(value.get("ruleSet"), is_checked=False),
    )
    deleted = bool(value.get("deleted", False))
    number, identifier = int(value["version"]), int(value["id"])
    return Version(value["subject"], number, identifier, in_our_layout(schema), deleted, value.get("md5"))


def _config(value: Json) -> Json:
    return {key: each for key, each in value.items() if key in _CONFIG_KEYS}
