"""Serializers and deserializers for any schema registry: Avro, JSON Schema, Protobuf."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ottla.registry.model import Reference, Schema
    from ottla.schema.avro import AvroDeserializer, AvroSerializer
    from ottla.schema.avro_types import AvroType
    from ottla.schema.deserializer import AnyDeserializer
    from ottla.schema.errors import RegistryRefused, RegistryUnavailable, SchemaError
    from ottla.schema.json_schema import JsonSchemaDeserializer, JsonSchemaSerializer
    from ottla.schema.protobuf import ProtobufDeserializer, ProtobufSerializer
    from ottla.schema.registry import Registered, Registry

__all__ = [
    "AnyDeserializer",
    "AvroDeserializer",
    "AvroSerializer",
    "AvroType",
    "JsonSchemaDeserializer",
    "JsonSchemaSerializer",
    "ProtobufDeserializer",
    "ProtobufSerializer",
    "Reference",
    "Registered",
    "Registry",
    "RegistryRefused",
    "RegistryUnavailable",
    "Schema",
    "SchemaError",
]

_WHERE: Final = {
    "AnyDeserializer": "ottla.schema.deserializer",
    "AvroDeserializer": "ottla.schema.avro",
    "AvroSerializer": "ottla.schema.avro",
    "AvroType": "ottla.schema.avro_types",
    "JsonSchemaDeserializer": "ottla.schema.json_schema",
    "JsonSchemaSerializer": "ottla.schema.json_schema",
    "ProtobufDeserializer": "ottla.schema.protobuf",
    "ProtobufSerializer": "ottla.schema.protobuf",
    "Reference": "ottla.registry.model",
    "Registered": "ottla.schema.registry",
    "Registry": "ottla.schema.registry",
    "RegistryRefused": "ottla.schema.errors",
    "RegistryUnavailable": "ottla.schema.errors",
    "Schema": "ottla.registry.model",
    "SchemaError": "ottla.schema.errors",
}

if not TYPE_CHECKING:
    # Without this, type checkers would accept any name.

    def __getattr__(name: str) -> object:
        """Imported lazily: the CLI commands for schemas need no client."""
        if name not in _WHERE:
            raise AttributeError(f"module 'ottla.schema' has no attribute {name!r}")
        return getattr(import_module(_WHERE[name]), name)
