"""Schemas of keys and values for `ottla produce` and `ottla consume`."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import msgspec

from ottla.cli.messages.lines import Json, Shown
from ottla.cli.schemas.files import TYPES, schema_in
from ottla.core.config_sources import DEFAULT_HTTP_PORT, REGISTRY_VARIABLE
from ottla.core.errors import ConfigError, OttlaError
from ottla.http.registry_config import REGISTRY_PREFIX
from ottla.schema.errors import RegistryRefused, RegistryUnavailable, SchemaError
from ottla.schema.frames import HEADERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.cli.connecting import Reach
    from ottla.cli.messages.lines import Message
    from ottla.client.consumer.record import ConsumerRecord
    from ottla.core.json_values import Json as JsonValue
    from ottla.registry.model import Schema
    from ottla.schema.deserializer import AnyDeserializer
    from ottla.schema.frames import Headers, Part
    from ottla.schema.registry import Registry

_FRAME_BYTES: Final = 5

Decorated = TypeVar("Decorated", bound="Callable[..., Any]")


def with_registry_option(command: Decorated) -> Decorated:
    return click.option(
        "--schema-registry",
        "registry_url",
        metavar="URL",
        envvar=REGISTRY_VARIABLE,
        show_envvar=True,
        help="URL of the schema registry, with user:password@ if it needs another login than the broker. "
        f"[default: that of the broker, at port {DEFAULT_HTTP_PORT}]",
    )(command)


def registry_of(reach: Reach, url: str | None) -> Registry:
    """The given one, that of the broker's profile, or the one in the broker, with the broker's login."""
    from ottla.schema.registry import Registry

    profile = reach.profile
    security = reach.security()
    if url is None and profile.schema_registry is None:
        host = profile.servers.split(",")[0].strip().rpartition(":")[0] or profile.servers
        scheme = "https" if security is not None and security.tls else "http"
        url = f"{scheme}://{host}:{DEFAULT_HTTP_PORT}{REGISTRY_PREFIX}"
    address = url or profile.schema_registry or ""
    login = (profile.user, profile.password or "") if profile.user and "@" not in address else None
    return Registry(
        address, auth=login, ca_file=profile.ca_file, cert_file=profile.cert_file, key_file=profile.key_file
    )


# Producing


class Encoding:
    """Turns the JSON of keys and values into the bytes of their schemas."""

    def __init__(
        self, registry: Registry, topic: str, schemas: dict[Part, str | None], *, registers: bool = True
    ) -> None:
        """`registers`: schemas of files, which must be registered otherwise."""
        self._topic = topic
        self._registers = registers
        self._serializers: dict[Part, Any] = {}
        self._values: dict[Part, Callable[[bytes], Any]] = {}
        for part, given in schemas.items():
            if given is not None:
                self._add(registry, part, given)

    def _add(self, registry: Registry, part: Part, given: str) -> None:
        from ottla.schema.avro import AvroSerializer
        from ottla.schema.json_schema import JsonSchemaSerializer
        from ottla.schema.protobuf import ProtobufSerializer

        schema, options = _given(registry, given)
        if not options and not self._registers:
            options = {"register": False}
        kinds: dict[str, Any] = {"AVRO": AvroSerializer, "JSON": JsonSchemaSerializer, "PROTOBUF": ProtobufSerializer}
        serializer = kinds[schema.type](registry, schema, **options)
        try:
            serializer.prepare(self._topic, part)
        except RegistryRefused as refused:
            if self._registers:
                raise
            raise OttlaError(
                f"{refused}; a dry run registers nothing: run ottla schema register {self._topic}-{part} {given}, or "
                "leave out --dry-run"
            ) from None
        self._serializers[part] = serializer
        self._values[part] = _avro_values(registry, schema) if schema.type == "AVRO" else _from_json

    def __call__(self, message: Message) -> Message:
        for part, serializer in self._serializers.items():
            data = getattr(message, part)
            if data is None:
                continue
            try:
                data, _ = serializer.serialize(self._values[part](data), self._topic, part, ())
            except SchemaError as wrong:
                raise ConfigError(f"the {part} is refused: {wrong}") from None
            message = replace(message, **{part: data})
        return message


def _given(registry: Registry, given: str) -> tuple[Schema, dict[str, Any]]:
    """A schema, and the options with which it is written."""
    from ottla.schema.frames import SchemaId

    if given.isdecimal():
        return registry.schema(SchemaId(number=int(given))), {"use": int(given)}
    if Path(given).suffix.lower() in TYPES:
        return schema_in(Path(given)), {}
    try:
        latest = registry.latest(given)
    except RegistryRefused as refused:
        raise OttlaError(
            f"{refused}; a schema is a subject, an id, or a file with the ending {', '.join(TYPES)}"
        ) from None
    return latest.schema, {"use": latest.id}


def _from_json(data: bytes) -> JsonValue:
    try:
        value: JsonValue = msgspec.json.decode(data)
    except msgspec.DecodeError as wrong:
        raise SchemaError(f"not JSON: {wrong}") from None
    return value


def _avro_values(registry: Registry, schema: Schema) -> Callable[[bytes], object]:
    from ottla.schema.avro import AvroCodec
    from ottla.schema.avro_json import avro_value

    parsed = AvroCodec(schema, registry.resolved(schema)).parsed
    if parsed == "string" or (isinstance(parsed, dict) and parsed.get("type") == "string"):
        return bytes.decode
    named = parsed.get("__named_schemas", {}) if isinstance(parsed, dict) else {}
    return lambda data: avro_value(parsed, _from_json(data), named)


# Consuming


class Decoding:
    """Decodes keys and values with a schema id to JSON; others are unchanged."""

    def __init__(self, reach: Reach, url: str | None) -> None:
        self._reach = reach
        self._url = url
        self._is_given = url is not None or reach.profile.schema_registry is not None
        self._deserializer: AnyDeserializer | None = None
        self._is_on = True
        self._told: set[str] = set()

    async def __call__(self, record: ConsumerRecord[bytes, bytes]) -> ConsumerRecord[bytes, bytes]:
        if not self._is_on or not (_is_framed(record.value) or _is_framed(record.key) or _has_id(record)):
            return record
        key = await self._decoded(record.key, "key", record)
        value = await self._decoded(record.value, "value", record)
        return Shown(
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            timestamp=record.timestamp,
            is_log_append_time=record.is_log_append_time,
            key=key,
            value=value,
            headers=record.headers,
        )

    async def _decoded(self, data: bytes | None, part: Part, record: ConsumerRecord[bytes, bytes]) -> bytes | None:
        if data is None or not self._is_on:
            return data
        try:
            value = await self._deserialized(data, part, record.headers)
        except RegistryUnavailable as unavailable:
            if self._is_given:
                raise
            self._is_on = False
            self._tell(f"messages with schema ids are not decoded: {unavailable}; pass --schema-registry URL, or --raw")
            return data
        except OttlaError as wrong:
            if _is_framed(data) or _has_id(record):
                self._tell(f"{record.topic}-{record.partition} at offset {record.offset}: {part} not decoded: {wrong}")
            return data
        return Json(msgspec.json.encode(value))

    async def _deserialized(self, data: bytes, part: Part, headers: Headers) -> object:
        from ottla.client.serializers import NotReady
        from ottla.schema.deserializer import AnyDeserializer

        if self._deserializer is None:
            self._deserializer = AnyDeserializer(registry_of(self._reach, self._url))
        try:
            return self._deserializer.deserialize(data, part, headers)
        except NotReady as needed:
            await asyncio.to_thread(needed.prepare)
            return self._deserializer.deserialize(data, part, headers)

    def _tell(self, message: str) -> None:
        reason = message.partition(": ")[2]
        if reason not in self._told:
            self._told.add(reason)
            click.echo(message, err=True)


def _is_framed(data: bytes | None) -> bool:
    return data is not None and len(data) >= _FRAME_BYTES and data[0] in (0, 1)


def _has_id(record: ConsumerRecord[bytes, bytes]) -> bool:
    return any(name in HEADERS.values() for name, _ in record.headers)
