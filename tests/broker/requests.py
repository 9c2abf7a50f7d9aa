"""Realistic random requests of every API and version, generated from the declarations with known names in them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from ottla.broker.requests.api_table import SERVED
from ottla.wire.apis import APIS, Api, request_type
from ottla.wire.codec import encode_request
from ottla.wire.declare import Blob, Fixed, RecordBytes, Text
from ottla.wire.schema import Array, Nested, layout

from .making import batch

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from ottla.wire.declare import Message, Request
    from ottla.wire.schema import Field, FieldType

_SMALL = (0, 1, 2, -1, 5, 100)
_EXTREME = {"b": 127, "h": 32767, "i": 2**31 - 1, "q": 2**63 - 1, "H": 65535, "I": 2**32 - 1}


class Known:
    """Names that exist in the broker, for use in requests."""

    def __init__(self, names: tuple[str, ...], ids: tuple[bytes, ...]) -> None:
        self.names = names
        self.ids = ids
        self.records = batch(b"a", b"b")


def served_versions() -> Iterator[tuple[Api, int]]:
    for key in SERVED:
        for version in range(APIS[key].first, APIS[key].last + 1):
            yield APIS[key], version


def random_frame(api: Api, version: int, pick: random.Random, known: Known) -> bytes:
    """A whole request with its header, without the size prefix."""
    request: Request = _struct(request_type(api), version, pick, known)  # type: ignore[assignment]
    return b"".join(encode_request(request, version, pick.randrange(2**31), "fuzz"))[4:]


def _struct(of: type[Message], version: int, pick: random.Random, known: Known) -> Message:
    fields = layout(of, version)
    values = {field.name: _value(field, version, pick, known) for field in fields.fields}
    values |= {field.name: _value(field, version, pick, known) for field in fields.tagged if pick.random() < 0.3}
    return of(**values | {name: 0 for name in _missing(of) if name not in values})


@cache
def _missing(of: type[Message]) -> tuple[str, ...]:
    """Fields without a default; a version may lack some of them."""
    count = len(of.__struct_fields__) - len(of.__struct_defaults__)
    return of.__struct_fields__[:count]


def _value(field: Field, version: int, pick: random.Random, known: Known) -> Any:
    if field.is_nullable and pick.random() < 0.2:
        return None
    return _random(field.type, field.name, version, pick, known)


def _random(of: FieldType, name: str, version: int, pick: random.Random, known: Known) -> Any:
    match of:
        case Fixed(format="?"):
            return pick.random() < 0.5
        case Fixed(format="d"):
            return pick.choice((0.0, 1.5, -1.0))
        case Fixed(format="16s"):
            return pick.choice((*known.ids, bytes(16), b"\x01" * 16))
        case Fixed(format=kind):
            return _number(kind, name, pick)
        case Text():
            return pick.choice((*known.names, *known.names, "", "nobody", "x" * 300, "ü/\x00", "1000", "-1"))
        case Blob():
            return pick.choice((b"", b"\x00\x01", bytes(50)))
        case RecordBytes():
            return pick.choice((known.records, known.records, b"", bytes(100)))
        case Array():
            return tuple(_random(of.element, name, version, pick, known) for _ in range(pick.choice((0, 1, 1, 2, 5))))
        case Nested():
            return _struct(of.struct, version, pick, known)
    raise TypeError(of)


def _number(kind: str, name: str, pick: random.Random) -> int:
    if kind in "HI":
        return pick.choice((0, 1, 100))
    if name.endswith("_ms") or "timeout" in name:
        return pick.choice((0, 1, 10, -1))
    if pick.random() < 0.1:
        return pick.choice((_EXTREME[kind], -_EXTREME[kind] - 1))
    return pick.choice(_SMALL)
