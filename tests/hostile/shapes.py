"""Hostile requests of any API and version, generated from the protocol's declarations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.wire.apis import APIS, request_type
from ottla.wire.codec import most_entries
from ottla.wire.declare import Blob, Fixed, RecordBytes, Text
from ottla.wire.schema import Array, Nested, layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.wire.apis import Api
    from ottla.wire.declare import Message, Request
    from ottla.wire.schema import Field, FieldType

KNOWN_TOPIC = "known"
LONG = 30_000
MANY = 10_000
_SMALL_TIMES = ("_ms", "timeout", "wait")
"""Names of fields with wait times; set to zero so that requests do not just wait."""
_BITS = {"b": 8, "B": 8, "h": 16, "H": 16, "i": 32, "I": 32, "q": 64}


class Shape(NamedTuple):
    """How values are chosen."""

    name: str
    wide: tuple[str, ...] = ()
    """The path of the list that has many entries; all others have one."""
    is_repeated: bool = False
    """Whether these are all the same."""
    text: str = "name"
    number: str = "zero"
    has_nulls: bool = False
    count: int = MANY
    """How many entries the list has."""


def served_versions() -> Iterator[tuple[Api, int]]:
    from ottla.broker.requests.api_table import SERVED

    for key in SERVED:
        api = APIS[key]
        for version in range(api.first, api.last + 1):
            yield api, version


def shapes(api: Api, version: int) -> Iterator[Shape]:
    kind = request_type(api)
    # Versions in between decode like one of these.
    for path in _lists(kind, version) if version == api.last else ():
        where = ".".join(path)
        yield Shape(f"many {where}", path)
        yield Shape(f"many known {where}", path, text=KNOWN_TOPIC)
        yield Shape(f"the same {where}", path, is_repeated=True)
    yield Shape("long texts", text="x" * LONG)
    yield Shape("odd texts", text="../\x00\n\u202e\U0001f4a3(a*)*b")
    yield Shape("known names", text=KNOWN_TOPIC)
    yield Shape("empty texts", text="")
    yield Shape("largest numbers", number="largest")
    yield Shape("smallest numbers", number="smallest")
    yield Shape("minus ones", number="minus one")
    yield Shape("nulls", has_nulls=True)


def largest(api: Api) -> Iterator[Shape]:
    """Requests with about the maximum number of entries that are decoded."""
    paths = list(_lists(request_type(api), api.last))
    for path in dict.fromkeys((*paths[:1], *paths[-1:])):
        nested = sum(each[: len(path)] == path for each in paths)
        count = (most_entries(api) - len(paths)) // nested
        yield Shape(f"as many {'.'.join(path)} as may be", path, count=count)


def _lists(kind: type[Message], version: int, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field in layout(kind, version).fields:
        match field.type:
            case Array(Nested(struct)):
                yield (*before, field.name)
                yield from _lists(struct, version, (*before, field.name))
            case Array():
                yield (*before, field.name)
            case Nested(struct):
                yield from _lists(struct, version, (*before, field.name))


def request_of(api: Api, version: int, shape: Shape) -> Request:
    made: Any = _Making(version, shape).message(request_type(api), (), 0)
    return made  # type: ignore[no-any-return]


class _Making:
    def __init__(self, version: int, shape: Shape) -> None:
        self._version = version
        self._shape = shape

    def message(self, kind: type[Message], path: tuple[str, ...], number: int) -> Message:
        fields = layout(kind, self._version).fields
        return kind(**{field.name: self._value(field, (*path, field.name), number) for field in fields})

    def _value(self, field: Field, path: tuple[str, ...], number: int) -> Any:
        if self._shape.has_nulls and field.is_nullable:
            return None
        match field.type:
            case Array(element):
                count = self._shape.count if path == self._shape.wide else 1
                return tuple(self._one(element, field, path, at) for at in range(count))
            case of:
                return self._one(of, field, path, number)

    def _one(self, of: FieldType, field: Field, path: tuple[str, ...], number: int) -> Any:
        number = 0 if self._shape.is_repeated else number
        match of:
            case Nested(struct):
                return self.message(struct, path, number)
            case Text():
                text = self._shape.text
                return f"{text}-{number}" if text == "name" and path[:-1] == self._shape.wide[: len(path) - 1] else text
            case Blob() | RecordBytes():
                return self._shape.text.encode("utf-8", "surrogatepass")
            case Fixed():
                return self._number(of, field.name, number)
            case _:
                raise TypeError(f"{of} is not a type of the protocol")

    def _number(self, of: Fixed, name: str, number: int) -> Any:
        if of.format == "16s":
            return number.to_bytes(16)
        if of.format == "?":
            return True
        if of.format not in _BITS:
            return 0.5
        if any(part in name for part in _SMALL_TIMES):
            return 1
        bits = _BITS[of.format]
        is_signed = of.format.islower()
        match self._shape.number:
            case "largest":
                return (1 << (bits - is_signed)) - 1
            case "smallest":
                return -(1 << (bits - 1)) if is_signed else 0
            case "minus one":
                return -1 if is_signed else 0
        return number % 100 if bits == 8 else number % 30_000 if bits == 16 else number
