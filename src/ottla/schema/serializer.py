"""The common base of serializers: subjects, ids, and where ids are written."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar

from ottla.core.errors import ConfigError
from ottla.registry.errors import InvalidSchema
from ottla.schema.errors import SchemaError
from ottla.schema.frames import HEADERS, SchemaId, guid_bytes, id_bytes
from ottla.schema.registry import Registry
from ottla.schema.subjects import subject_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from ottla.records.encode import Headers
    from ottla.registry.model import Schema
    from ottla.registry.schemas import Resolved
    from ottla.schema.frames import IdPlace, Part
    from ottla.schema.subjects import Strategy

T = TypeVar("T")


class SerializerOptions(TypedDict, total=False):
    subjects: Strategy | Callable[[str, Part, str | None], str]
    """topic (the default), record or topic-record; or a function of topic, "key" or "value", and record name."""
    register: bool
    """Register the schema when it is first used (the default); otherwise it must already be registered."""
    use: Literal["latest"] | int | None
    """Write with the latest version of the subject, or the schema with this id, instead of the given schema."""
    normalize: bool
    """Let the registry normalize the schema."""
    ids: IdPlace
    """prefix: id before the data (the default); guid: GUID before the data; header: GUID in a header."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """SerializerOptions with their defaults, validated."""

    subjects: Strategy | Callable[[str, Part, str | None], str] = "topic"
    register: bool = True
    use: Literal["latest"] | int | None = None
    normalize: bool = False
    ids: IdPlace = field(default="prefix")

    def __post_init__(self) -> None:
        if self.ids not in ("prefix", "guid", "header"):
            raise ConfigError(f"ids must be prefix, guid or header, got {self.ids!r}")
        use: object = self.use
        if use is not None and use != "latest" and (not isinstance(use, int) or use < 0):
            raise ConfigError(f'use must be "latest" or the id of a schema, got {self.use!r}')


@dataclass(frozen=True, slots=True)
class Writing:
    """How values are written for one subject."""

    encode: Callable[[Any], bytes]
    frame: bytes
    """The id, and in Protobuf the message's path."""


class SchemaSerializer(ABC, Generic[T]):
    """For a producer: `value_serializer=…` or `key_serializer=…`. Can also be called: `serializer(value,
    topic="orders")`.
    """

    def __init__(self, registry: Registry | str, **options: Unpack[SerializerOptions]) -> None:
        if unknown := options.keys() - SerializerOptions.__annotations__.keys():
            raise ConfigError(f"unknown option {min(unknown)!r} of a serializer")
        self.registry = Registry.of(registry)
        self.settings = Settings(**options)
        self._writings: dict[tuple[str | None, Part], Writing] = {}
        self._preparing = threading.Lock()

    # Implemented for each schema type

    @property
    @abstractmethod
    def schema(self) -> Schema | None:
        """The given schema; None if the registry's is used."""

    @property
    @abstractmethod
    def record_name(self) -> str | None:
        """The record name in the subjects of `subjects="record"` and `"topic-record"`."""

    @abstractmethod
    def encoder(self, schema: Schema, resolved: Resolved) -> tuple[Callable[[Any], bytes], bytes]:
        """The encoder for this schema, and the bytes after the id."""

    def with_references(self, schema: Schema) -> Schema:
        """The given schema, with references to registered versions."""
        return schema

    # For the producer

    def is_ready(self, topic: str, part: Part) -> bool:
        return (topic, part) in self._writings

    def prepare(self, topic: str | None, part: Part) -> None:
        """Register the schema, or load the one to use."""
        with self._preparing:
            if (topic, part) not in self._writings:
                self._writings[topic, part] = self._prepared(topic, part)

    def writing(self, topic: str | None, part: Part) -> tuple[bytes, Callable[[Any], bytes]]:
        """The bytes before the data, and the encoder: for many values of one topic."""
        self.prepare(topic, part)
        found = self._writings[topic, part]
        return found.frame, found.encode

    def serialize(self, value: T, topic: str | None, part: Part, headers: Headers) -> tuple[bytes, Headers]:
        writing = self._writings[topic, part]
        if self.settings.ids == "header":
            return writing.encode(value), (*headers, (HEADERS[part], writing.frame))
        return writing.frame + writing.encode(value), headers

    def __call__(self, value: T, topic: str | None = None, part: Part = "value") -> bytes:
        """Serialize one value; blocks when the topic is first used."""
        if self.settings.ids == "header":
            raise SchemaError('ids="header" needs a producer, which writes headers')
        if (topic, part) not in self._writings:
            self.prepare(topic, part)
        return self.serialize(value, topic, part, ())[0]

    def _prepared(self, topic: str | None, part: Part) -> Writing:
        schema, number, guid = self._chosen(topic, part)
        try:
            encode, rest = self.encoder(schema, self.registry.resolved(schema))
        except InvalidSchema as wrong:
            raise SchemaError(f"the schema is not valid: {wrong}") from None
        if self.settings.ids == "prefix":
            return Writing(encode, id_bytes(number) + rest)
        return Writing(encode, guid_bytes(guid or self.registry.schema(SchemaId(number=number)).guid) + rest)

    def _chosen(self, topic: str | None, part: Part) -> tuple[Schema, int, str | None]:
        settings, registry = self.settings, self.registry
        if isinstance(settings.use, int):
            return registry.schema(SchemaId(number=settings.use)), settings.use, None
        subject = subject_of(settings.subjects, topic, part, self.record_name)
        if settings.use == "latest":
            latest = registry.latest(subject)
            return latest.schema, latest.id, latest.guid
        if self.schema is None:
            raise ConfigError('give a schema or type, or use="latest" or use=ID')
        schema = self.with_references(self.schema)
        find = registry.register if settings.register else registry.lookup
        found = find(subject, schema, normalize=settings.normalize)
        return schema, found.id, found.guid
