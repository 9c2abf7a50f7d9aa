"""Generates the source of a decoder: straight-line Python for one struct in one version.

The generated code reads a memoryview `d` at position `p` up to `end`. Adjacent fixed-size fields
are read by one precompiled `struct`, together with the length that follows them and the first byte
of a varint, which is usually all of it. Reading past the end raises IndexError or
struct.error, caught once around everything; slices would be silently truncated, so every length is compared with
the remaining bytes before it is used.

`room` limits how many array entries and tagged fields the message may still have: an entry of three
bytes becomes an object of a hundred, so the frame size alone limits neither memory nor time.
"""

from __future__ import annotations

from contextlib import nullcontext
from struct import error as struct_error
from struct import unpack_from
from typing import TYPE_CHECKING, Any, Final

from ottla.wire import primitives
from ottla.wire.declare import Blob, Fixed, RecordBytes, Text, Trailed
from ottla.wire.schema import Array, Field, FieldType, Nested, layout, smallest_size
from ottla.wire.source import Source, precompiled, unpacker

if TYPE_CHECKING:
    from ottla.wire.declare import Message

_RUNTIME: Final[dict[str, Any]] = {
    "struct_error": struct_error,
    "unpack_from": unpack_from,
    "rest_of_uvarint": primitives.rest_of_uvarint,
    "take_tags": primitives.take_tags,
    "tag_at": primitives.tag_at,
    "skip_tags": primitives.skip_tags,
    "bad_length": primitives.bad_length,
    "bad_count": primitives.bad_count,
    "bad_tag_size": primitives.bad_tag_size,
    "bad_text": primitives.bad_text,
    "ends_early": primitives.ends_early,
    "left_over": primitives.left_over,
}


class DecoderSource:
    """Generates one decoder. Locals are named after their field and nesting depth."""

    def __init__(self, what: str, version: int, *, is_flexible: bool) -> None:
        self._version = version
        self._is_flexible = is_flexible
        self._pending: list[tuple[str, str]] = []
        self._depth = 0
        self._path: list[str] = []
        self._out = Source({"WHAT": what, **_RUNTIME})

    def write(self, struct: type[Message], room: int) -> Source:
        out = self._out
        with out.block("def decode(d, p):"):
            out.line("end = len(d)")
            out.line(f"room = {room}")
            with out.block("try:"):
                self._struct("message", struct)
            with out.block("except (IndexError, struct_error):"):
                out.line("raise ends_early(WHAT, end) from None")
            with out.block("except UnicodeDecodeError as error:"):
                out.line("raise bad_text(WHAT, p, error) from None")
            if not issubclass(struct, Trailed):
                with out.block("if p != end:"):
                    out.line("raise left_over(WHAT, p, end)")
            out.line("return message")
        return out

    def _struct(self, target: str, struct: type[Message]) -> None:
        """Read every field into a local, then build the struct from them."""
        self._depth += 1
        present = layout(struct, self._version)
        for field in present.fields:
            self._field(field)
        if self._is_flexible:
            self._tags(struct, present.tagged)
        self._flush()
        cls = self._out.name(struct.__name__, struct)
        values = ", ".join(f"{field.name}={self._local(field)}" for field in present.fields + present.tagged)
        self._out.line(f"{target} = {cls}({values})")
        self._depth -= 1

    def _field(self, field: Field) -> None:
        self._path.append(field.name)
        if isinstance(field.type, Nested) and field.is_nullable:
            # In a tagged field 0 means null, otherwise a negative number does.
            is_null = "n < 0" if field.tag is None else "n == 0"
            self._nullable_struct(self._local(field), field.type.struct, is_null)
        else:
            self._value(self._local(field), field.type, field.is_nullable)
        self._path.pop()

    def _local(self, field: Field) -> str:
        return f"{field.name}_{self._depth}"

    def _value(self, target: str, of: FieldType, is_nullable: bool) -> None:
        match of:
            case Fixed():
                self._pending.append((of.format, target))
            case Text():
                limit = f" or n > {primitives.MAX_STRING_BYTES + 1}" if self._is_flexible else ""
                self._sized("h", target, "d[p:q].tobytes().decode()", is_nullable, limit)
            case Blob():
                self._sized("i", target, "d[p:q].tobytes()", is_nullable)
            case RecordBytes():
                self._sized("i", target, "d[p:q]", is_nullable)
            case Array():
                self._array(target, of.element, is_nullable)
            case Nested():
                self._struct(target, of.struct)

    def _prefix(self, legacy: str) -> None:
        """Read a length or count into n, with the fixed fields before it; compact ones are offset by one."""
        self._pending.append(("B" if self._is_flexible else legacy, "n"))
        self._flush()
        if self._is_flexible:
            with self._out.block("if n > 127:"):
                self._out.line("n, p = rest_of_uvarint(d, p, n)")

    def _sized(self, legacy: str, target: str, take: str, is_nullable: bool, limit: str = "") -> None:
        """Slice as many bytes as the length indicates, after a bounds check."""
        out = self._out
        self._prefix(legacy)
        null, length, shortest = (0, "n - 1", 1) if self._is_flexible else (-1, "n", 0)
        if is_nullable:
            with out.block(f"if n == {null}:"):
                out.line(f"{target} = None")
        with out.block("else:") if is_nullable else nullcontext():
            out.line(f"q = p + {length}")
            with out.block(f"if n < {shortest} or q > end{limit}:"):
                out.line(f"raise bad_length(WHAT, {self._field_name!r}, {length}, end - p)")
            out.line(f"{target} = {take}")
            out.line("p = q")

    def _array(self, target: str, element: FieldType, is_nullable: bool) -> None:
        out = self._out
        self._prefix("i")
        if self._is_flexible:
            out.line("n -= 1")
        if is_nullable:
            with out.block("if n == -1:"):
                out.line(f"{target} = None")
        with out.block("else:") if is_nullable else nullcontext():
            self._entries(target, element)

    def _entries(self, target: str, element: FieldType) -> None:
        """Read n entries, limited by `room`."""
        out = self._out
        size = smallest_size(element, self._version, is_flexible=self._is_flexible)
        out.line("room -= n")
        with out.block(f"if n < 0 or room < 0 or n * {size} > end - p:"):
            out.line(f"raise bad_count(WHAT, {self._field_name!r}, n, end - p)")
        if isinstance(element, Fixed) and len(element.format) == 1:
            out.line(f'{target} = unpack_from(f">{{n}}{element.format}", d, p)')
            out.line(f"p += n * {size}")
            return
        out.line(f"{target} = []")
        with out.block("for _ in range(n):"):
            entry = f"entry_{self._depth}"
            self._value(entry, element, is_nullable=False)
            self._flush()
            out.line(f"{target}.append({entry})")
        out.line(f"{target} = tuple({target})")

    def _nullable_struct(self, target: str, struct: type[Message], is_null: str) -> None:
        """Read a nullable struct (KIP-893): the first byte indicates whether it is present."""
        self._pending.append(("b", "n"))
        self._flush()
        with self._out.block(f"if {is_null}:"):
            self._out.line(f"{target} = None")
        with self._out.block("else:"):
            self._struct(target, struct)

    def _tags(self, struct: type[Message], tagged: tuple[Field, ...]) -> None:
        out = self._out
        self._pending.append(("B", "n"))
        self._flush()
        for field in tagged:
            default = out.name(f"DEFAULT_{struct.__name__}_{field.name}", field.default)
            out.line(f"{self._local(field)} = {default}")
        with out.block("if n:"):
            if not tagged:
                out.line("p, room = skip_tags(WHAT, d, p, n, room)")
                return
            out.line("n, p, room = take_tags(WHAT, d, p, n, room)")
            with out.block("for _ in range(n):"):
                self._tag(tagged)

    def _tag(self, tagged: tuple[Field, ...]) -> None:
        out = self._out
        begin, stop = f"begin_{self._depth}", f"stop_{self._depth}"
        out.line(f"n, p, {stop} = tag_at(WHAT, d, p)")
        out.line(f"{begin} = p")
        for index, field in enumerate(tagged):
            with out.block(f"{'elif' if index else 'if'} n == {field.tag}:"):
                self._field(field)
                self._flush()
                with out.block(f"if p != {stop}:"):
                    name = ".".join((*self._path, field.name))
                    out.line(f"raise bad_tag_size(WHAT, {name!r}, {stop} - {begin}, p - {begin})")
        with out.block("else:"):
            out.line(f"p = {stop}")

    @property
    def _field_name(self) -> str:
        return ".".join(self._path)

    def _flush(self) -> None:
        """Read the fixed fields collected so far."""
        if not self._pending:
            return
        formats = "".join(character for character, _ in self._pending)
        targets = ", ".join(target for _, target in self._pending)
        if formats == "B":
            self._out.line(f"{targets} = d[p]")
        else:
            unpack = self._out.name(f"unpack_{formats.replace('?', 'o')}", unpacker(formats))
            self._out.line(f"{targets}{',' * (len(self._pending) == 1)} = {unpack}(d, p)")
        self._out.line(f"p += {precompiled(formats).size}")
        self._pending = []
