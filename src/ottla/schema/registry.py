"""A client of any schema registry: schemas by id, GUID, subject and version, cached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ottla.registry.model import AVRO, Reference, Schema
from ottla.schema.connection import RegistryConnection
from ottla.schema.errors import RegistryRefused, SchemaError

if TYPE_CHECKING:
    from typing import Self, Unpack

    from ottla.registry.schemas import Resolved
    from ottla.schema.connection import ConnectionOptions
    from ottla.schema.frames import SchemaId


@dataclass(frozen=True, slots=True)
class Registered:
    """A version of a subject."""

    subject: str
    version: int
    id: int
    guid: str | None
    """None if the registry is too old to have GUIDs."""
    schema: Schema


class Registry:
    """`Registry("http://localhost:8080/schema-registry")`. Thread-safe; calls block.

    Schemas that were fetched or registered are cached. The latest version of a subject is requested each time.
    """

    def __init__(self, url: str, **options: Unpack[ConnectionOptions]) -> None:
        self._given = (url, dict(options))
        self.connection = RegistryConnection(url, **options)
        self._by_id: dict[SchemaId, Schema] = {}
        self._registered: dict[tuple[str, Schema, bool, bool], Registered] = {}
        self._versions: dict[tuple[str, int], Registered] = {}

    @classmethod
    def of(cls, given: Self | str) -> Self:
        return cls(given) if isinstance(given, str) else given

    def __repr__(self) -> str:
        return f"Registry({self.url!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        url, options = self._given
        return _restored, (url, options)

    @property
    def url(self) -> str:
        return self.connection.url

    # Schemas

    def schema(self, wanted: SchemaId) -> Schema:
        """The schema with this id or GUID."""
        known = self._by_id.get(wanted)
        if known is None:
            path = ("ids", wanted.number) if wanted.number is not None else ("guids", wanted.guid)
            try:
                known = _schema(self.connection.get(dict[str, Any], "schemas", *path))
            except RegistryRefused as refused:
                raise SchemaError(f"no schema with {wanted} in the registry at {self.url}: {refused}") from None
            self._by_id[wanted] = known
        return known

    def latest(self, subject: str) -> Registered:
        """The latest version of a subject."""
        return self._version(subject, "latest")

    def version(self, subject: str, number: int) -> Registered:
        """One version of a subject, even if it is soft-deleted."""
        found = self._versions.get((subject, number))
        if found is None:
            found = self._versions[subject, number] = self._version(subject, number)
        return found

    def _version(self, subject: str, number: int | Literal["latest"]) -> Registered:
        deleted = number != "latest"
        path = ("subjects", subject, "versions", number)
        return _registered(self.connection.get(dict[str, Any], *path, deleted=deleted), subject)

    def subjects(self) -> list[str]:
        return self.connection.get(list[str], "subjects")

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> Registered:
        """Register a schema, or return its version if it is already registered."""
        known = self._registered.get((subject, schema, normalize, True))
        if known is not None:
            return known
        path, body = ("subjects", subject), _body(schema)
        made = self.connection.post(dict[str, Any], *path, "versions", body=body, normalize=normalize)
        if not {"version", "guid", "schema"} <= made.keys():
            # Older registries return only the id.
            made |= self.connection.post(dict[str, Any], *path, body=body, normalize=normalize)
        found = self._registered[subject, schema, normalize, True] = _registered(made, subject)
        return found

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> Registered:
        """The version of a registered schema."""
        known = self._registered.get((subject, schema, normalize, False))
        if known is None:
            path = ("subjects", subject)
            found = self.connection.post(dict[str, Any], *path, body=_body(schema), normalize=normalize)
            known = self._registered[subject, schema, normalize, False] = _registered(found, subject)
        return known

    def resolved(self, schema: Schema) -> Resolved:
        """The references of a schema, direct and indirect, dependencies first."""
        found: dict[str, tuple[Reference, str]] = {}
        self._collect(schema, found, set())
        return tuple(found.values())

    def _collect(
        self, schema: Schema, found: dict[str, tuple[Reference, str]], under_way: set[tuple[str, int]]
    ) -> None:
        for each in schema.references:
            if each.name in found or (each.subject, each.version) in under_way:
                continue
            under_way.add((each.subject, each.version))
            referenced = self.version(each.subject, each.version).schema
            self._collect(referenced, found, under_way)
            found[each.name] = each, referenced.text


def _restored(url: str, options: dict[str, Any]) -> Registry:
    return Registry(url, **options)


def _body(schema: Schema) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": schema.text, "schemaType": schema.type}
    if schema.references:
        body["references"] = [each.shown() for each in schema.references]
    if schema.metadata is not None:
        body["metadata"] = schema.metadata
    if schema.rule_set is not None:
        body["ruleSet"] = schema.rule_set
    return body


def _schema(given: dict[str, Any]) -> Schema:
    references = (Reference(each["name"], each["subject"], each["version"]) for each in given.get("references") or ())
    return Schema(given["schema"], given.get("schemaType") or AVRO, tuple(references))


def _registered(given: dict[str, Any], subject: str) -> Registered:
    return Registered(subject, int(given["version"]), int(given["id"]), given.get("guid"), _schema(given))
