"""Generates the source of an encoder: straight-line Python for one struct in one version.

The generated code appends to a bytearray `w` that may already have contents.
Adjacent fixed-size fields, and the length that follows them, are packed by one precompiled `struct`.
Large records are not copied: the bytes written so far and the records become separate buffers
in `parts`.
"""

from __future__ import annotations

from contextlib import nullcontext
from struct import error as struct_error
from struct import pack
from typing import TYPE_CHECKING, Any, Final

from ottla.wire import primitives
from ottla.wire.declare import Blob, Fixed, RecordBytes, Text
from ottla.wire.schema import Array, Field, FieldType, Nested, layout
from ottla.wire.source import Source, packer

if TYPE_CHECKING:
    from ottla.wire.declare import Message

_RUNTIME: Final[dict[str, Any]] = {
    "struct_error": struct_error,
    "pack": pack,
    "uvarint": primitives.uvarint,
    "string_length": primitives.compact_string_length,
    "exactly": primitives.exactly,
    "unencodable": primitives.unencodable,
}


class EncoderSource:
    """Generates one encoder. Locals are named after their nesting depth."""

    def __init__(self, what: str, version: int, *, is_flexible: bool) -> None:
        self._version = version
        self._is_flexible = is_flexible
        self._null = 0 if is_flexible else -1
        self._plus_one = " + 1" if is_flexible else ""
        self._pending: list[tuple[str, str]] = []
        self._depth = 0
        self._out = Source({"WHAT": what, **_RUNTIME})

    def write(self, struct: type[Message]) -> Source:
        out = self._out
        with out.block("def encode(message, w):"):
            with out.block("try:"):
                out.line("parts = []")
                self._struct("message", struct)
                self._flush()
            with out.block("except (struct_error, AttributeError, TypeError) as error:"):
                out.line("raise unencodable(WHAT, error) from error")
            out.line("parts.append(w)")
            out.line("return parts")
        return out

    def _struct(self, source: str, struct: type[Message]) -> None:
        self._depth += 1
        present = layout(struct, self._version)
        for field in present.fields:
            self._value(f"{source}.{field.name}", field.type, field.is_nullable)
        if self._is_flexible:
            self._tags(source, struct, present.tagged)
        self._depth -= 1

    def _value(self, source: str, of: FieldType, is_nullable: bool) -> None:
        match of:
            case Fixed():
                # struct would silently pad or truncate a uuid of another length.
                value = source if len(of.format) == 1 else f"exactly({of.size}, {source})"
                self._pending.append((of.format, value))
            case Text():
                self._text(source, is_nullable)
            case Blob():
                self._bytes(source, is_nullable)
                self._out.line("w += s")
            case RecordBytes():
                self._bytes(source, is_nullable)
                self._records()
            case Array():
                self._array(source, of.element, is_nullable)
            case Nested() if is_nullable:
                self._nullable_struct(source, of.struct)
            case Nested():
                self._struct(self._bound(source), of.struct)

    def _bound(self, source: str) -> str:
        """A local for a struct whose fields are about to be read."""
        if "." not in source:
            return source
        self._flush()  # pending fields may read the local's previous value
        self._out.line(f"x{self._depth} = {source}")
        return f"x{self._depth}"

    def _text(self, source: str, is_nullable: bool) -> None:
        out = self._out
        if is_nullable:
            out.line(f"s = {source}")
            with out.block("if s is None:"):
                out.line(f"s, n = b'', {self._null}")
        with out.block("else:") if is_nullable else nullcontext():
            out.line("s = s.encode()" if is_nullable else f"s = {source}.encode()")
            out.line(f"n = len(s){self._plus_one}")
        self._prefix("h", "string_length")
        out.line("w += s")

    def _bytes(self, source: str, is_nullable: bool) -> None:
        out = self._out
        out.line(f"s = {source}")
        if is_nullable:
            with out.block("if s is None:"):
                out.line(f"s, n = b'', {self._null}")
        with out.block("else:") if is_nullable else nullcontext():
            out.line(f"n = len(s){self._plus_one}")
        self._prefix("i", "uvarint")

    def _records(self) -> None:
        out = self._out
        with out.block(f"if n > {primitives.COPIED_RECORD_BYTES}{self._plus_one}:"):
            out.line("parts += (w, s)")
            out.line("w = bytearray()")
        with out.block("else:"):
            out.line("w += s")

    def _prefix(self, legacy: str, compact: str) -> None:
        """Write n, a length or count, together with the fixed fields before it."""
        out = self._out
        if not self._is_flexible:
            self._pending.append((legacy, "n"))
            self._flush()
            return
        before = self._packed()
        self._pending.append(("B", "n"))
        with out.block("if n < 128:"):
            out.line(f"w += {self._packed()}" if before else "w.append(n)")
        with out.block("else:"):
            out.line(f"w += {before} + {compact}(n)" if before else f"w += {compact}(n)")
        self._pending = []

    def _array(self, source: str, element: FieldType, is_nullable: bool) -> None:
        out = self._out
        entries = f"entries_{self._depth}"
        out.line(f"{entries} = {source}")
        if is_nullable:
            out.line(f"n = {self._null} if {entries} is None else len({entries}){self._plus_one}")
        else:
            out.line(f"n = len({entries}){self._plus_one}")
        self._prefix("i", "uvarint")
        with out.block(f"if {entries}:"):
            if isinstance(element, Fixed) and len(element.format) == 1:
                out.line(f'w += pack(f">{{len({entries})}}{element.format}", *{entries})')
                return
            with out.block(f"for x{self._depth} in {entries}:"):
                self._value(f"x{self._depth}", element, is_nullable=False)
                self._flush()

    def _nullable_struct(self, source: str, struct: type[Message], null: str = "ff") -> None:
        """Write a nullable struct (KIP-893): the first byte indicates whether it is present."""
        self._flush()
        local = self._bound(source)
        with self._out.block(f"if {local} is None:"):
            self._out.line(f"w += b'\\x{null}'")
        with self._out.block("else:"):
            self._out.line("w += b'\\x01'")
            self._struct(local, struct)
            self._flush()

    def _tags(self, source: str, struct: type[Message], tagged: tuple[Field, ...]) -> None:
        """Write the tagged fields that differ from their defaults; nearly always none, which is one zero byte."""
        if not tagged:
            self._pending.append(("x", ""))
            return
        self._flush()
        out = self._out
        defaults = [out.name(f"DEFAULT_{struct.__name__}_{field.name}", field.default) for field in tagged]
        values = [f"{source}.{field.name}" for field in tagged]
        # Identity first: an unchanged default is the same object, and comparing structs is slower.
        unset = [
            f"({value} is {default} or {value} == {default})" for value, default in zip(values, defaults, strict=True)
        ]
        with out.block(f"if {' and '.join(unset)}:"):
            out.line("w.append(0)")
        with out.block("else:"):
            outer, tags = f"outer_{self._depth}", f"tags_{self._depth}"
            out.line(f"{outer}, {tags} = w, []")
            for field, value, default in zip(tagged, values, defaults, strict=True):
                with out.block(f"if {value} != {default}:"):
                    out.line("w = bytearray()")
                    if isinstance(field.type, Nested) and field.is_nullable:
                        self._nullable_struct(value, field.type.struct, null="00")
                    else:
                        self._value(value, field.type, field.is_nullable)
                    self._flush()
                    out.line(f"{tags} += (uvarint({field.tag}), uvarint(len(w)), w)")
            out.line(f"w = {outer}")
            out.line(f"w += uvarint(len({tags}) // 3)")
            out.line(f"w += b''.join({tags})")

    def _packed(self) -> str:
        """An expression for the fixed fields collected so far; empty if there are none."""
        if not self._pending:
            return ""
        formats = "".join(character for character, _ in self._pending)
        if formats == "x":
            return "b'\\0'"
        pack_run = self._out.name(f"pack_{formats.replace('?', 'o')}", packer(formats))
        return f"{pack_run}({', '.join(value for _, value in self._pending if value)})"

    def _flush(self) -> None:
        if packed := self._packed():
            self._out.line(f"w += {packed}")
        self._pending = []
