"""kio, generated from Kafka's own schemas, as the judge of every byte.

kio keeps durations, times, error codes and ids as objects where we keep numbers and bytes, and drops `_ms`
from the names of durations; that is all there is between its messages and ours.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import io
import string
import uuid
from enum import Enum
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from kio.index import load_payload_module
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from ottla.wire.declare import NO_UUID, Message, Request, Response
from ottla.wire.schema import Array, Nested, layout

if TYPE_CHECKING:
    import random

    from ottla.wire.apis import Api

_MILLISECOND = dt.timedelta(milliseconds=1)
_OWN_TAGS = 10_000
"""Tagged fields from this number on are Ottla's own, and not part of Kafka's schemas."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_TEXT_LENGTHS = (0, 1, 3, 12, 126, 127, 128, 300)
_BYTE_LENGTHS = (0, 1, 50, 127, 128, 20_000)
_ERROR_CODES = list(ErrorCode)


def kio_type(api: Api, message: type[Request | Response], version: int) -> type[Any]:
    if issubclass(message, Request):
        module = load_payload_module(api.key, version, EntityType.request)
    else:
        module = load_payload_module(api.key, version, EntityType.response)
    loaded: type[Any] = getattr(module, message.__name__)
    return loaded


def kio_encode(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def kio_decode(of: type[Any], data: bytes) -> Any:
    entity, size = entity_reader(of)(data, 0)
    assert size == len(data)
    return entity


def random_entity(of: type[Any], pick: random.Random) -> Any:
    hints = get_type_hints(of)
    values = {
        field.name: field.default
        if field.default is not dataclasses.MISSING and pick.random() < 0.2
        else _random_value(hints[field.name], field.metadata.get("kafka_type"), pick)
        for field in dataclasses.fields(of)
    }
    return of(**values)


def as_ours(entity: Any, message: type[Message], version: int) -> Message:
    """The equivalent message of ours."""
    present = layout(message, version)
    values = {}
    for field in (*present.fields, *present.tagged):
        if field.tag is not None and field.tag >= _OWN_TAGS:
            continue
        value = getattr(entity, field.name, ...)
        if value is ...:
            value = getattr(entity, field.name.removesuffix("_ms"))
        values[field.name] = _plain(value, field.type, version)
    return message(**values)


def _plain(value: Any, of: object, version: int) -> Any:
    match of:
        case Nested():
            return None if value is None else as_ours(value, of.struct, version)
        case Array():
            return None if value is None else tuple(_plain(entry, of.element, version) for entry in value)
    match value:
        case dt.timedelta():
            return value // _MILLISECOND
        case dt.datetime():
            return (value - _EPOCH) // _MILLISECOND
        case uuid.UUID():
            return value.bytes
        case Enum():
            return value.value
        case None:
            return {"16s": NO_UUID, "q": -1}.get(getattr(of, "format", ""))
    return value


def _random_value(hint: Any, kafka_type: str | None, pick: random.Random) -> Any:
    if get_origin(hint) is UnionType:
        if pick.random() < 0.3:
            return None
        [hint] = [choice for choice in get_args(hint) if choice is not type(None)]
    if get_origin(hint) is tuple:
        count = pick.choice((0, 1, 1, 2, 3))
        return tuple(_random_value(get_args(hint)[0], kafka_type, pick) for _ in range(count))
    if kafka_type is None:
        return random_entity(hint, pick)
    return _random_primitive(kafka_type, pick)


def _random_primitive(kafka_type: str, pick: random.Random) -> Any:
    match kafka_type:
        case "bool":
            return pick.random() < 0.5
        case "string":
            alphabet = string.ascii_letters if pick.random() < 0.7 else "aß漢🦊\0"
            return "".join(pick.choices(alphabet, k=pick.choice(_TEXT_LENGTHS)))
        case "bytes" | "records":
            return pick.randbytes(pick.choice(_BYTE_LENGTHS))
        case "uuid":
            return uuid.UUID(bytes=pick.randbytes(16))
        case "float64":
            return pick.uniform(-1e300, 1e300)
        case "error_code":
            return pick.choice(_ERROR_CODES)
        case "timedelta_i32" | "timedelta_i64":
            return dt.timedelta(milliseconds=_random_int(31, pick))
        case "datetime_i64":
            return _EPOCH + dt.timedelta(seconds=pick.randrange(2**35))
    bits = int(kafka_type.removeprefix("u").removeprefix("int"))
    return pick.randrange(2**bits) if kafka_type.startswith("u") else _random_int(bits - 1, pick)


def _random_int(bits: int, pick: random.Random) -> int:
    limit = 2**bits
    return pick.choice((0, 1, -1, limit - 1, -limit, pick.randrange(-limit, limit)))
