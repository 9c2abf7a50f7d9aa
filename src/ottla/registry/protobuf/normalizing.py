"""The normalized form: fields, constants, imports and options sorted, and names resolved."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.registry.protobuf.nodes import (
    SCALARS,
    Entry,
    Enum,
    Extend,
    Field,
    Listed,
    Literal,
    Message,
    OneOf,
    Option,
    ProtoFile,
    Rpc,
    Service,
    Span,
    Value,
    Word,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ottla.registry.protobuf.types import Scope, Types


def normalized(file: ProtoFile, types: Types) -> ProtoFile:
    return _Normalizer(types).file(file)


class _Normalizer:
    def __init__(self, types: Types) -> None:
        self._types = types

    def file(self, file: ProtoFile) -> ProtoFile:
        scope = tuple(file.package.split(".")) if file.package else ()
        return replace(
            file,
            syntax=file.syntax if file.syntax == "proto3" else "",
            imports=sorted(set(file.imports)),
            public_imports=sorted(set(file.public_imports)),
            weak_imports=sorted(set(file.weak_imports)),
            options=self._options(file.options, scope),
            types=[self._type(each, scope) for each in file.types],
            extends=self._extends(file.extends, scope),
            services=[self._service(each, scope) for each in file.services],
        )

    def _type(self, declared: Message | Enum, scope: Scope) -> Message | Enum:
        if isinstance(declared, Message):
            return self._message(declared, (*scope, declared.name))
        values = sorted(declared.values, key=lambda each: (each.number, each.name))
        return replace(
            declared,
            values=[replace(each, options=self._options(each.options, scope)) for each in values],
            options=self._options(declared.options, scope),
            reserved=_reserved(declared.reserved),
        )

    def _message(self, message: Message, scope: Scope) -> Message:
        oneofs = [self._oneof(each, scope) for each in message.oneofs if each.fields]
        spans = [(span, each) for each in message.extensions for span in each.spans]
        return replace(
            message,
            fields=self._fields(message.fields, scope),
            oneofs=sorted(oneofs, key=lambda each: each.fields[0].tag),
            types=[self._type(each, scope) for each in message.types],
            options=self._options(message.options, scope),
            reserved=_reserved(message.reserved),
            extensions=[
                replace(each, spans=(span._replace(is_range=False),))
                for span, each in sorted(spans, key=lambda pair: pair[0])
            ],
            extends=self._extends(message.extends, scope),
        )

    def _oneof(self, oneof: OneOf, scope: Scope) -> OneOf:
        return replace(oneof, fields=self._fields(oneof.fields, scope), options=self._options(oneof.options, scope))

    def _fields(self, fields: Iterable[Field], scope: Scope) -> list[Field]:
        return sorted((self._field(each, scope) for each in fields), key=lambda each: each.tag)

    def _field(self, field: Field, scope: Scope) -> Field:
        group = None if field.group is None else self._message(field.group, (*scope, field.group.name))
        shown = field.type
        if field.map_types is not None:
            shown = f"map<{field.map_types[0]}, {self._name(field.map_types[1], scope)}>"
        elif group is None:
            shown = self._name(field.type, scope)
        return replace(field, type=shown, options=self._options(field.options, scope), group=group)

    def _name(self, name: str, scope: Scope) -> str:
        resolved = None if name in SCALARS else self._types.resolve(name, scope)
        return name if resolved is None else f".{resolved}"

    def _extends(self, extends: Iterable[Extend], scope: Scope) -> list[Extend]:
        """The extensions, grouped by message."""
        by_name: dict[str, list[Field]] = {}
        for extend in extends:
            by_name.setdefault(self._name(extend.name, scope), []).extend(extend.fields)
        return [Extend(name, self._fields(fields, scope)) for name, fields in by_name.items()]

    def _service(self, service: Service, scope: Scope) -> Service:
        rpcs = [self._rpc(each, scope) for each in service.rpcs]
        return replace(service, rpcs=rpcs, options=self._options(service.options, scope))

    def _rpc(self, rpc: Rpc, scope: Scope) -> Rpc:
        request, response = self._name(rpc.request, scope), self._name(rpc.response, scope)
        return replace(rpc, request=request, response=response, options=self._options(rpc.options, scope))

    # Options

    def _options(self, options: Sequence[Option], scope: Scope) -> list[Option]:
        """The options, sorted; assignments to parts of one extension become one message."""
        found: dict[str, list[Value]] = {}
        for option in options:
            name, value = self._whole(option, scope)
            found.setdefault(name, []).append(self._sorted(value, scope))
        merged: list[Option] = []
        for name in sorted(found, key=lambda each: each.strip("()")):
            merged += (Option(name, value) for value in self._merged(name, found[name]))
        return merged

    def _whole(self, option: Option, scope: Scope) -> tuple[str, Value]:
        """`(ext).a.b = 1` is `(ext) = {a: {b: 1}}`."""
        if not option.name.startswith("("):
            return option.name, option.value
        name, _, rest = option.name[1:].partition(")")
        resolved = self._types.resolve_extension(name, scope)
        if resolved is None:
            return option.name, option.value
        value = option.value
        for step in reversed(rest.lstrip(".").split(".") if rest else []):
            value = Literal((Entry(step, value),))
        return f"({resolved})", value

    def _merged(self, name: str, values: list[Value]) -> list[Value]:
        extension = self._types.extensions.get(name.strip("()"))
        if len(values) == 1 or extension is None or extension.label == "repeated":
            return values
        literals = [value for value in values if isinstance(value, Literal)]
        return [_combined(literals)] if len(literals) == len(values) else values

    def _sorted(self, value: Value, scope: Scope) -> Value:
        if isinstance(value, Literal):
            kept = (entry for entry in value.entries if entry.value != Listed(()))
            found = {self._entry_name(name, scope): self._sorted(each, scope) for name, each in kept}
            return Literal(tuple(Entry(name, found[name]) for name in sorted(found)))
        if isinstance(value, Listed):
            inner = tuple(self._sorted(each, scope) for each in value.values)
            return inner[0] if len(inner) == 1 else Listed(inner)
        if isinstance(value, Word) and value.text.endswith(".0"):
            return Word(value.text[:-2])
        return value

    def _entry_name(self, name: str, scope: Scope) -> str:
        resolved = self._types.resolve_extension(name[1:-1], scope) if name.startswith("[") else None
        return name if resolved is None else f"[{resolved}]"


def _combined(literals: list[Literal]) -> Value:
    """Merge the entries of several messages; entries that cannot be merged become a list."""
    found: dict[str, list[Value]] = {}
    for literal in literals:
        for name, value in literal.entries:
            found.setdefault(name, []).append(value)
    entries = []
    for name in sorted(found):
        values = found[name]
        inner = [value for value in values if isinstance(value, Literal)]
        if len(values) == 1:
            entries.append(Entry(name, values[0]))
        elif len(inner) == len(values) and not _overlap(inner):
            entries.append(Entry(name, _combined(inner)))
        else:
            flat = (each for value in values for each in (value.values if isinstance(value, Listed) else (value,)))
            entries.append(Entry(name, Listed(tuple(flat))))
    return Literal(tuple(entries))


def _overlap(literals: list[Literal]) -> bool:
    names = [name for literal in literals for name, _ in literal.entries]
    return len(set(names)) != len(names)


def _reserved(reserved: Iterable[tuple[Span | str, ...]]) -> list[tuple[Span | str, ...]]:
    single = [each for line in reserved for each in line]
    spans = sorted(each._replace(is_range=False) for each in single if isinstance(each, Span))
    return [
        *((each,) for each in spans),
        *((each,) for each in sorted(each for each in single if isinstance(each, str))),
    ]
