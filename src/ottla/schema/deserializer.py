"""The common base of deserializers: schemas by id, loaded once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from ottla.client.serializers import NotReady
from ottla.core.errors import OttlaError
from ottla.registry.errors import InvalidSchema
from ottla.registry.model import AVRO, JSON
from ottla.schema.errors import SchemaError
from ottla.schema.frames import header_indexes, split
from ottla.schema.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.registry.model import Schema
    from ottla.registry.schemas import Resolved
    from ottla.schema.frames import Headers, Part, SchemaId

T_co = TypeVar("T_co", covariant=True)

_NO_HEADERS: Final[Headers] = ()
Reader = "Callable[[bytes, bytes | None], Any]"


class SchemaDeserializer(ABC, Generic[T_co]):
    """For a consumer: `value_deserializer=…` or `key_deserializer=…`. Can also be called with the bytes of a value."""

    kinds: tuple[str, ...] = ()
    """The schema types that it reads; all if empty."""

    def __init__(self, registry: Registry | str) -> None:
        self.registry = Registry.of(registry)
        self._readers: dict[SchemaId, Callable[[bytes, bytes | None], Any]] = {}
        self._failed: dict[SchemaId, OttlaError] = {}

    @abstractmethod
    def reader(self, schema: Schema, resolved: Resolved) -> Callable[[bytes, bytes | None], Any]:
        """A function that decodes the data after the id; it also gets the bytes after the id if that is in a header."""

    def deserialize(self, data: bytes, part: Part, headers: Headers) -> T_co:
        """Deserialize for the consumer: does not block, but raises NotReady."""
        wanted, begin = split(data, part, headers)
        reader = self._readers.get(wanted)
        if reader is None:
            if (failed := self._failed.pop(wanted, None)) is not None:
                raise failed
            raise NotReady(partial(self._prepare, wanted))
        found: T_co = reader(data[begin:], header_indexes(part, headers) if headers else None)
        return found

    def __call__(self, data: bytes, headers: Headers = _NO_HEADERS, part: Part = "value") -> T_co:
        """Deserialize these bytes; blocks when a schema is first used."""
        try:
            return self.deserialize(data, part, headers)
        except NotReady as needed:
            needed.prepare()
            return self.deserialize(data, part, headers)

    def _prepare(self, wanted: SchemaId) -> None:
        """Load the schema. An error is raised by the next `deserialize`, which knows the record that it concerns."""
        try:
            self._readers[wanted] = self._loaded(wanted)
        except OttlaError as failed:
            self._failed[wanted] = failed

    def _loaded(self, wanted: SchemaId) -> Callable[[bytes, bytes | None], Any]:
        schema = self.registry.schema(wanted)
        if self.kinds and schema.type not in self.kinds:
            raise SchemaError(f"the schema with {wanted} is {schema.type}, not {' or '.join(self.kinds)}")
        try:
            return self.reader(schema, self.registry.resolved(schema))
        except InvalidSchema as wrong:
            raise SchemaError(f"the schema with {wanted} is not valid: {wrong}") from None


class AnyDeserializer(SchemaDeserializer[Any]):
    """Reads Avro, JSON Schema and Protobuf, depending on the schema; Protobuf messages as dictionaries."""

    def reader(self, schema: Schema, resolved: Resolved) -> Callable[[bytes, bytes | None], Any]:
        if schema.type == AVRO:
            from ottla.schema.avro import AvroDeserializer

            return AvroDeserializer[Any](self.registry).reader(schema, resolved)
        if schema.type == JSON:
            from ottla.schema.json_schema import JsonSchemaDeserializer

            return JsonSchemaDeserializer[Any](self.registry, validate=False).reader(schema, resolved)
        from ottla.schema.protobuf import dictionaries

        return dictionaries(schema, resolved)
