"""JSON keys and values with a JSON Schema. Needs jsonschema to validate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

import msgspec

from ottla.core.errors import ConfigError
from ottla.registry.model import JSON, Schema
from ottla.schema.deserializer import SchemaDeserializer
from ottla.schema.errors import SchemaError
from ottla.schema.serializer import SchemaSerializer
from ottla.schema.typed import from_plain, is_model, is_typed, to_json_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Unpack

    from ottla.registry.schemas import Resolved
    from ottla.schema.registry import Registry
    from ottla.schema.serializer import SerializerOptions

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_DEFINITIONS: Final = "#/$defs/"


def json_schema(kind: type[Any]) -> dict[str, Any]:
    """The schema of a dataclass, msgspec struct or pydantic model."""
    if is_model(kind):
        return {"$schema": _DRAFT, **kind.model_json_schema(by_alias=True, mode="serialization")}
    found = msgspec.json.schema(kind)
    name = found.get("$ref", "").removeprefix(_DEFINITIONS)
    others = {key: each for key, each in found.get("$defs", {}).items() if key != name}
    # Inlined at the top level, so that the schema has a title; not possible if the type is recursive.
    if name and f'"{_DEFINITIONS}{name}"' not in json.dumps(found["$defs"]):
        found = {**found["$defs"][name], **({"$defs": others} if others else {})}
    else:
        found = {"title": kind.__name__, **found}
    return {"$schema": _DRAFT, **found}


def given_schema(given: object) -> Schema | None:
    if given is None or isinstance(given, Schema):
        return given
    if is_typed(given):
        return Schema(json.dumps(json_schema(given)), JSON)  # type: ignore[arg-type]
    if isinstance(given, str):
        return Schema(given, JSON)
    if isinstance(given, dict):
        return Schema(json.dumps(given), JSON)
    raise ConfigError(f"expected a JSON Schema, or a dataclass, struct or model that gives one, got {given!r}")


def validator(schema: Schema, resolved: Resolved) -> Callable[[Any], None]:
    """A function that raises SchemaError for an invalid value."""
    try:
        from jsonschema import Draft7Validator
        from jsonschema.validators import validator_for
        from referencing import Registry as Documents
        from referencing import Resource
        from referencing.jsonschema import DRAFT7
    except ImportError:
        raise ConfigError("JSON Schema needs the package jsonschema; run: pip install 'ottla[registry]'") from None
    documents: Any = Documents()
    for reference, text in resolved:
        resource = Resource.from_contents(json.loads(text), default_specification=DRAFT7)
        documents = documents.with_resource(reference.name, resource)
    document = _document(schema)
    made: Any = validator_for(document, default=Draft7Validator)(document, registry=documents)

    def validate(value: object) -> None:
        wrong = next(iter(made.iter_errors(value)), None)
        if wrong is not None:
            raise SchemaError(f"not valid by the JSON Schema at {wrong.json_path}: {wrong.message}")

    return validate


def _document(schema: Schema) -> dict[str, Any] | bool:
    try:
        document: dict[str, Any] | bool = json.loads(schema.text)
    except ValueError as wrong:
        raise SchemaError(f"the JSON Schema is not JSON: {wrong}") from None
    return document


class JsonSchemaSerializer(SchemaSerializer[T], Generic[T]):
    """`JsonSchemaSerializer(registry, Order)`, or with the text of a schema for dictionaries."""

    @overload
    def __init__(
        self, registry: Registry | str, schema: type[T], *, validate: bool = True, **options: Unpack[SerializerOptions]
    ) -> None: ...

    @overload
    def __init__(
        self: JsonSchemaSerializer[Any],
        registry: Registry | str,
        schema: str | Mapping[str, Any] | Schema | None = None,
        *,
        validate: bool = True,
        **options: Unpack[SerializerOptions],
    ) -> None: ...

    def __init__(self, registry: Registry | str, schema: object = None, **options: Any) -> None:
        self._validates = bool(options.pop("validate", True))
        super().__init__(registry, **options)
        self._schema = given_schema(schema)
        document = None if self._schema is None else _document(self._schema)
        self._name = document.get("title") if isinstance(document, dict) else None

    @property
    def schema(self) -> Schema | None:
        return self._schema

    @property
    def record_name(self) -> str | None:
        return self._name

    def encoder(self, schema: Schema, resolved: Resolved) -> tuple[Callable[[Any], bytes], bytes]:
        dump = msgspec.json.Encoder().encode
        if not self._validates:
            return lambda value: dump(to_json_values(value)), b""
        validate = validator(schema, resolved)

        def encode(value: object) -> bytes:
            plain = to_json_values(value)
            validate(plain)
            return dump(plain)

        return encode, b""


class JsonSchemaDeserializer(SchemaDeserializer[T_co], Generic[T_co]):
    """`JsonSchemaDeserializer(registry, Order)`, or without a type for dictionaries."""

    kinds = (JSON,)

    @overload
    def __init__(self, registry: Registry | str, type: type[T_co], *, validate: bool = True) -> None: ...  # noqa: A002

    @overload
    def __init__(
        self: JsonSchemaDeserializer[Any],
        registry: Registry | str,
        type: None = None,  # noqa: A002
        *,
        validate: bool = True,
    ) -> None: ...

    def __init__(
        self,
        registry: Registry | str,
        type: type[Any] | None = None,  # noqa: A002 - as everywhere
        *,
        validate: bool = True,
    ) -> None:
        super().__init__(registry)
        self._validates = validate
        self._convert = from_plain(type, ())

    def reader(self, schema: Schema, resolved: Resolved) -> Callable[[bytes, bytes | None], Any]:
        validate = validator(schema, resolved) if self._validates else None
        convert = self._convert

        def read(data: bytes, _: bytes | None) -> object:
            try:
                value = msgspec.json.decode(data)
            except msgspec.DecodeError as wrong:
                raise SchemaError(f"not JSON: {wrong}") from None
            if validate is not None:
                validate(value)
            try:
                return value if convert is None else convert(value)
            except Exception as wrong:
                raise SchemaError(f"the value does not fit the type: {wrong}") from wrong

        return read
