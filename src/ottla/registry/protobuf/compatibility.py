"""The comparison of two .proto files; the rules and their names are those of Confluent's registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.registry.errors import InvalidSchema
from ottla.registry.protobuf.nodes import SCALARS, Enum, Field, Message

if TYPE_CHECKING:
    from ottla.registry.protobuf.types import Declared, Scope, Types

COMPATIBLE: Final = frozenset(
    [
        "MESSAGE_ADDED",
        "MESSAGE_MOVED",
        "ENUM_ADDED",
        "ENUM_REMOVED",
        "ENUM_CONST_ADDED",
        "ENUM_CONST_CHANGED",
        "ENUM_CONST_REMOVED",
        "FIELD_ADDED",
        "FIELD_REMOVED",
        "FIELD_NAME_CHANGED",
        "FIELD_STRING_OR_BYTES_LABEL_CHANGED",
        "ONEOF_ADDED",
        "ONEOF_REMOVED",
        "ONEOF_FIELD_ADDED",
        "ONEOF_FIELD_MOVED_TO_TOP_LEVEL",
    ]
)
_KINDS: Final = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "bool"), "general number"),
    **dict.fromkeys(("sint32", "sint64"), "signed number"),
    **dict.fromkeys(("string", "bytes"), "string or bytes"),
    **dict.fromkeys(("fixed32", "sfixed32"), "fixed32"),
    **dict.fromkeys(("fixed64", "sfixed64"), "fixed64"),
    "float": "float",
    "double": "double",
}
_DESCRIPTIONS: Final = {
    "PACKAGE_CHANGED": "the package at '{path}' in the %s schema differs from that of the %s schema",
    "MESSAGE_REMOVED": "the %s schema lacks the message at path '{path}' of the %s schema",
    "FIELD_KIND_CHANGED": "the kind of the field at path '{path}' in the %s schema differs from the %s schema",
    "FIELD_SCALAR_KIND_CHANGED": "the scalar type of the field at path '{path}' in the %s schema is encoded differently"
    " from that of the %s schema",
    "FIELD_NAMED_TYPE_CHANGED": "the message type of the field at path '{path}' in the %s schema differs from"
    " that of the %s schema",
    "FIELD_NUMERIC_LABEL_CHANGED": "the label of the numeric field at path '{path}' in the %s schema differs from"
    " the %s schema",
    "REQUIRED_FIELD_ADDED": "the required field at path '{path}' in the %s schema is missing in the %s schema",
    "REQUIRED_FIELD_REMOVED": "the %s schema lacks the required field at path '{path}' of the %s schema",
    "ONEOF_FIELD_REMOVED": "the %s schema lacks the oneof field at path '{path}' of the %s schema",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "several fields of the oneof at path '{path}' in the %s schema are independent"
    " in the %s schema",
    "FIELD_MOVED_TO_EXISTING_ONEOF": "a field of the oneof at path '{path}' in the %s schema is outside of it"
    " in the %s schema",
}


class Difference(NamedTuple):
    type: str
    path: str

    def __str__(self) -> str:
        described = _DESCRIPTIONS.get(self.type, "").format(path=self.path)
        return f'{{errorType:"{self.type}", description:"{described}"}}'


def compare(original: Types, update: Types) -> list[Difference]:
    """All differences, compatible or not."""
    comparison = _Comparison(original, update)
    try:
        if original.file.package != update.file.package:
            comparison.add("PACKAGE_CHANGED")
        comparison.types(original.file.types, update.file.types)
    except RecursionError:
        raise InvalidSchema("nested too deeply to be compared") from None
    return comparison.differences


class _Comparison:
    def __init__(
        self,
        original: Types,
        update: Types,
        under_way: set[int] | None = None,
        place: tuple[tuple[str, ...], str, str] | None = None,
    ) -> None:
        self._original = original
        self._update = update
        self._under_way = under_way if under_way is not None else set()
        name, before, after = place or ((), original.file.package, update.file.package)
        self._path = list(name)
        self._name = list(name)
        self._packages = before, after
        self.differences: list[Difference] = []

    @property
    def is_compatible(self) -> bool:
        return all(each.type in COMPATIBLE for each in self.differences)

    def add(self, kind: str, *steps: object) -> None:
        self.differences.append(Difference(kind, "#/" + "/".join((*self._path, *map(str, steps)))))

    # Types

    def types(self, original: list[Message | Enum], update: list[Message | Enum]) -> None:
        before = {each.name: each for each in original if isinstance(each, Message)}
        after = {each.name: each for each in update if isinstance(each, Message)}
        order_before, order_after = list(before), list(after)
        for name in before | after:
            if name not in after:
                self.add("MESSAGE_REMOVED", name)
            elif name not in before:
                self.add("MESSAGE_ADDED", name)
            else:
                with _Entered(self._path, self._name, name):
                    self.message(before[name], after[name])
                    if order_before.index(name) != order_after.index(name):
                        self.add("MESSAGE_MOVED")
        enums_before = {each.name: each for each in original if isinstance(each, Enum)}
        enums_after = {each.name: each for each in update if isinstance(each, Enum)}
        for name in enums_before | enums_after:
            if name not in enums_after:
                self.add("ENUM_REMOVED", name)
            elif name not in enums_before:
                self.add("ENUM_ADDED", name)
            else:
                self._enum(enums_before[name], enums_after[name])

    def _enum(self, original: Enum, update: Enum) -> None:
        before = {each.number: each.name for each in original.values}
        after = {each.number: each.name for each in update.values}
        for number in sorted(before | after):
            if number not in after:
                self.add("ENUM_CONST_REMOVED", update.name, number)
            elif number not in before:
                self.add("ENUM_CONST_ADDED", update.name, number)
            elif before[number] != after[number]:
                self.add("ENUM_CONST_CHANGED", update.name, number)

    def message(self, original: Message, update: Message) -> None:
        is_outermost = id(original) not in self._under_way
        if is_outermost:
            self._under_way.add(id(original))
            before, after = _Tagged(original), _Tagged(update)
            self._exclusivity(before, after)
            self._oneofs(before, after)
            for tag in sorted(before.fields | after.fields):
                self._tag(tag, before, after)
        self.types(original.types, update.types)
        if is_outermost:
            self._under_way.discard(id(original))

    def _exclusivity(self, before: _Tagged, after: _Tagged) -> None:
        """Fields that could be set together before must not be in one oneof now."""
        for name, tags in after.oneofs.items():
            origins: set[str] = set()
            moved = 0
            for tag in tags:
                if tag in before.oneof_of:
                    origins.add(f"oneof {before.oneof_of[tag]}")
                elif tag in before.fields:
                    origins.add(f"field {tag}")
                    moved += 1
            if len(origins) > 1:
                several = moved > 1
                self.add("MULTIPLE_FIELDS_MOVED_TO_ONEOF" if several else "FIELD_MOVED_TO_EXISTING_ONEOF", name)

    def _oneofs(self, before: _Tagged, after: _Tagged) -> None:
        for name in sorted(before.oneofs | after.oneofs):
            if name not in after.oneofs:
                self.add("ONEOF_REMOVED", name)
            elif name not in before.oneofs:
                self.add("ONEOF_ADDED", name)

    # Fields

    def _tag(self, tag: int, before: _Tagged, after: _Tagged) -> None:
        was_in, is_in = before.oneof_of.get(tag), after.oneof_of.get(tag)
        original, update = before.fields.get(tag), after.fields.get(tag)
        if original is not None and update is not None:
            if was_in is not None and is_in is None:
                self.add("ONEOF_FIELD_MOVED_TO_TOP_LEVEL", tag)
            steps = [str(tag)] if is_in is None else [is_in, str(tag)]
            self._path += steps
            self._field(original, update)
            del self._path[-len(steps) :]
        elif original is not None:
            if was_in is None:
                self.add("REQUIRED_FIELD_REMOVED" if original.label == "required" else "FIELD_REMOVED", tag)
            elif not before.is_gone(was_in, after):
                self.add("ONEOF_FIELD_REMOVED", was_in, tag)
        elif update is not None:
            if is_in is None:
                self.add("REQUIRED_FIELD_ADDED" if update.label == "required" else "FIELD_ADDED", tag)
            else:
                self.add("ONEOF_FIELD_ADDED", is_in, tag)

    def _field(self, original: Field, update: Field) -> None:
        if original.name != update.name:
            self.add("FIELD_NAME_CHANGED")
        self._types_of(original.type, update.type, (original.label, update.label))

    def _types_of(self, original: str, update: str, labels: tuple[str, str]) -> None:
        kind = self._kind(original, self._original, 0)
        if kind != self._kind(update, self._update, 1):
            self.add("FIELD_KIND_CHANGED")
        elif kind == "scalar":
            self._scalars(original, update, labels)
        elif kind == "message":
            self._messages(original, update)
        else:
            before, after = original[4:-1].split(", "), update[4:-1].split(", ")
            for one, other in zip(before, after, strict=True):
                self._types_of(one, other, ("", ""))

    def _kind(self, name: str, types: Types, side: int) -> str:
        if name.startswith("map<"):
            return "map"
        declared = None if name in SCALARS else self._declared(name, types, side)
        return "scalar" if name in SCALARS or (declared is not None and declared.is_enum) else "message"

    def _scope(self, side: int) -> Scope:
        package = self._packages[side]
        return (*(package.split(".") if package else ()), *self._name)

    def _declared(self, name: str, types: Types, side: int) -> Declared | None:
        full = types.resolve(name, self._scope(side))
        return None if full is None else types.get(full)

    def _scalars(self, original: str, update: str, labels: tuple[str, str]) -> None:
        kind = _KINDS.get(original, "general number")  # an enum is a number
        if kind != _KINDS.get(update, "general number"):
            self.add("FIELD_SCALAR_KIND_CHANGED")
        elif all(labels) and labels[0] != labels[1]:
            what = "STRING_OR_BYTES" if kind == "string or bytes" else "NUMERIC"
            self.add(f"FIELD_{what}_LABEL_CHANGED")

    def _messages(self, original: str, update: str) -> None:
        full_before = self._original.resolve(original, self._scope(0))
        full_after = self._update.resolve(update, self._scope(1))
        before = None if full_before is None else self._original.get(full_before)
        after = None if full_after is None else self._update.get(full_after)
        if full_before is None or full_after is None or before is None or after is None:
            if original != update:
                self.add("FIELD_NAMED_TYPE_CHANGED")
            return
        local = _local(full_before, before)
        if local != _local(full_after, after):
            self.add("FIELD_NAMED_TYPE_CHANGED")
        elif before.origin is None or before.origin != after.origin:
            self._inner(local, before, after)

    def _inner(self, local: str, before: Declared, after: Declared) -> None:
        place = tuple(local.split(".")), before.package, after.package
        inner = _Comparison(self._original, self._update, set(self._under_way), place)
        if isinstance(before.type, Message) and isinstance(after.type, Message):
            inner.message(before.type, after.type)
        self.differences += inner.differences
        if not inner.is_compatible or (before.type is None) != (after.type is None):
            self.add("FIELD_NAMED_TYPE_CHANGED")


class _Tagged:
    """The fields of a message by tag, and their oneofs."""

    def __init__(self, message: Message) -> None:
        self.fields = {each.tag: each for each in message.all_fields()}
        self.oneofs = {each.name: [field.tag for field in each.fields] for each in message.oneofs}
        self.oneof_of = {tag: name for name, tags in self.oneofs.items() for tag in tags}

    def is_gone(self, oneof: str, after: _Tagged) -> bool:
        """Whether a oneof is removed with all its fields."""
        return oneof not in after.oneofs and not any(tag in after.fields for tag in self.oneofs[oneof])


class _Entered:
    def __init__(self, path: list[str], name: list[str], step: str) -> None:
        self._path, self._name, self._step = path, name, step

    def __enter__(self) -> None:
        self._path.append(self._step)
        self._name.append(self._step)

    def __exit__(self, *_: object) -> None:
        self._path.pop()
        self._name.pop()


def _local(full: str, declared: Declared) -> str:
    prefix = f"{declared.package}."
    return full.removeprefix(prefix)
