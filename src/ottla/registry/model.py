"""Schemas as they are registered, and their fingerprints."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

AVRO: Final = "AVRO"
JSON: Final = "JSON"
PROTOBUF: Final = "PROTOBUF"
TYPES: Final = (JSON, PROTOBUF, AVRO)
LEVELS: Final = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)
MODES: Final = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
POLICIES: Final = ("LOGICAL", "STRICT", "LENIENT")

Json = dict[str, Any]


class Reference(NamedTuple):
    name: str
    subject: str
    version: int

    def shown(self) -> Json:
        return {"name": self.name, "subject": self.subject, "version": self.version}


@dataclass(frozen=True, slots=True)
class Schema:
    text: str
    type: str = AVRO
    references: tuple[Reference, ...] = ()
    metadata: Json | None = field(default=None, hash=False)
    """The metadata as in the API, with sorted keys and without empty parts."""
    rule_set: Json | None = field(default=None, hash=False)

    def fingerprint(self) -> bytes:
        """The MD5 by which Confluent's registry identifies a schema; formatted as a UUID it is the schema's GUID."""
        digest = hashlib.md5(self.text.encode(), usedforsecurity=False)
        for name, subject, version in self.references:
            digest.update(name.encode() + subject.encode() + (version & 0xFFFFFFFF).to_bytes(4))
        if self.metadata is not None:
            digest.update(b"\1" + b"".join(_metadata_parts(self.metadata)))
        if self.rule_set is not None:
            digest.update(b"\1" + b"".join(_rule_set_parts(self.rule_set)))
        return digest.digest()

    @property
    def guid(self) -> str:
        return str(uuid.UUID(bytes=self.fingerprint()))


def _metadata_parts(metadata: Json) -> list[bytes]:
    parts: list[str] = []
    for name, values in metadata.get("tags", {}).items():
        parts += (name, *values)
    for name, value in metadata.get("properties", {}).items():
        parts += (name, value)
    parts += metadata.get("sensitive", ())
    return [part.encode() for part in parts]


def _rule_set_parts(rule_set: Json) -> list[bytes]:
    parts: list[bytes] = []
    for kind in RULE_KINDS:
        for rule in rule_set.get(kind, ()):
            parts += _rule_parts(rule)
    if rule_set.get("enableAt"):
        parts.append(rule_set["enableAt"].encode())
    return parts


def _rule_parts(rule: Json) -> list[bytes]:
    parts: list[str] = [rule[key] for key in ("name", "doc", "kind", "mode", "type") if rule.get(key) is not None]
    parts += rule.get("tags", ())
    for name, value in rule.get("params", {}).items():
        parts += (name, value)
    parts += (rule[key] for key in ("expr", "onSuccess", "onFailure") if rule.get(key) is not None)
    return [*(part.encode() for part in parts), b"\1" if rule.get("disabled") else b""]


RULE_KINDS: Final = ("migrationRules", "domainRules", "encodingRules")


@dataclass(frozen=True, slots=True)
class Version:
    """A schema under a subject."""

    subject: str
    """The subject, qualified with its context."""
    version: int
    id: int
    schema: Schema
    is_deleted: bool = False
    md5: str | None = None
    """The MD5 stored by a registry that encodes sensitive metadata."""

    def shown(self) -> Json:
        """The schema entity of the API."""
        schema = self.schema
        found: Json = {
            "subject": self.subject,
            "version": self.version,
            "id": self.id,
            "guid": schema.guid,
            "schemaType": schema.type,
            "references": [each.shown() for each in schema.references],
            "metadata": schema.metadata,
            "ruleSet": schema.rule_set,
            "schema": schema.text,
        }
        return {key: value for key, value in found.items() if value not in (None, [])}
