"""Compiles a declaration and a version to plans for the compiled reader and writer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.wire.declare import Blob, Fixed, RecordBytes, Text, Trailed
from ottla.wire.reader import ReadPlan, ReadStep
from ottla.wire.schema import Array, Field, FieldType, Nested, layout, smallest_size
from ottla.wire.writer import WritePlan, WriteStep

if TYPE_CHECKING:
    from ottla.wire.compiler import Decoder, Encoder, MessageT, Responder
    from ottla.wire.declare import Message


def compile_decoder(struct: type[MessageT], version: int, *, is_flexible: bool, room: int) -> Decoder[MessageT]:
    plan = _Reading(f"{struct.__name__} v{version}", version, is_flexible=is_flexible, room=room).plan(struct, "")
    return plan.decode


def compile_encoder(struct: type[MessageT], version: int, *, is_flexible: bool) -> Encoder[MessageT]:
    return _Writing(f"{struct.__name__} v{version}", version, is_flexible=is_flexible).plan(struct, "").encode


def compile_framer(struct: type[MessageT], version: int, *, is_flexible: bool) -> Encoder[MessageT]:
    planner = _Writing(f"{struct.__name__} v{version}", version, is_flexible=is_flexible)
    return planner.plan(struct, "").encode_framed


def compile_responder(
    struct: type[MessageT], version: int, *, is_flexible: bool, has_header_tags: bool
) -> Responder[MessageT]:
    plan = _Writing(f"{struct.__name__} v{version}", version, is_flexible=is_flexible).plan(struct, "")
    return plan.encode_flexible_response if has_header_tags else plan.encode_response


class _Reading:
    def __init__(self, what: str, version: int, *, is_flexible: bool, room: int) -> None:
        self._what = what
        self._version = version
        self._is_flexible = is_flexible
        self._room = room

    def plan(self, struct: type[MessageT], prefix: str) -> ReadPlan[MessageT]:
        present = layout(struct, self._version)
        return ReadPlan(
            struct,
            self._what,
            [self._step(field, prefix + field.name) for field in present.fields],
            [self._step(field, prefix + field.name) for field in present.tagged],
            is_flexible=self._is_flexible,
            may_go_on=issubclass(struct, Trailed),
            room=self._room,
        )

    def _step(self, field: Field, path: str) -> ReadStep:
        of = field.type
        measured = of.element if isinstance(of, Array) else of
        return ReadStep(
            _kind(of),
            what=self._what,
            path=path,
            is_nullable=field.is_nullable,
            is_flexible=self._is_flexible,
            element=self._step(_entry(of), path) if isinstance(of, Array) else None,
            plan=self.plan(of.struct, path + ".") if isinstance(of, Nested) else None,
            smallest=smallest_size(measured, self._version, is_flexible=self._is_flexible),
            tag=-1 if field.tag is None else field.tag,
            default=field.default,
        )


class _Writing:
    def __init__(self, what: str, version: int, *, is_flexible: bool) -> None:
        self._what = what
        self._version = version
        self._is_flexible = is_flexible

    def plan(self, struct: type[Message], prefix: str) -> WritePlan:
        present = layout(struct, self._version)
        return WritePlan(
            self._what,
            [self._step(field, prefix + field.name) for field in present.fields],
            [self._step(field, prefix + field.name) for field in present.tagged],
            is_flexible=self._is_flexible,
        )

    def _step(self, field: Field, path: str) -> WriteStep:
        of = field.type
        return WriteStep(
            _kind(of),
            path=path,
            is_nullable=field.is_nullable,
            is_flexible=self._is_flexible,
            element=self._step(_entry(of), path) if isinstance(of, Array) else None,
            plan=self.plan(of.struct, path + ".") if isinstance(of, Nested) else None,
            size=of.size if isinstance(of, Fixed) else 0,
            tag=-1 if field.tag is None else field.tag,
            default=field.default,
        )


def _entry(array: Array) -> Field:
    """An array's entries as a separate field, without a name and not nullable."""
    return Field("", array.element, is_nullable=False, default=None, tag=None)


def _kind(of: FieldType) -> str:
    """The name of the field's type in reader and writer."""
    match of:
        case Fixed():
            return "u" if of.size == 16 else of.format
        case Text():
            return "s"
        case Blob():
            return "y"
        case RecordBytes():
            return "r"
        case Array():
            return "*"
        case Nested():
            return "{"
