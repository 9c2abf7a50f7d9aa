"""The types of a file and its references, by full name, and name resolution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.registry.errors import InvalidSchema
from ottla.registry.protobuf.known import KNOWN_ENUMS, KNOWN_EXTENSIONS, KNOWN_MESSAGES
from ottla.registry.protobuf.nodes import SCALARS, Enum, Extend, Field, Message, ProtoFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Scope = tuple[str, ...]
Origin = tuple[str, int]
_OWN: Final[Origin] = ("", -1)
_KNOWN: Final[Origin] = ("", -2)


@dataclass(frozen=True, slots=True)
class Declared:
    """A declared type; `type` is None for a well-known type."""

    package: str
    origin: Origin | None
    """The subject and version that declare it, if it is referenced directly."""
    type: Message | Enum | None
    is_enum: bool


class Types:
    def __init__(
        self, file: ProtoFile, references: Mapping[str, ProtoFile], origins: Mapping[str, Origin] | None = None
    ) -> None:
        self.file = file
        self._found: dict[str, Declared] = {}
        self.extensions: dict[str, Field] = {
            name: Field("optional", ".confluent.Meta", name, 1) for name in KNOWN_EXTENSIONS
        }
        for names, is_enum in ((KNOWN_MESSAGES, False), (KNOWN_ENUMS, True)):
            for name in names:
                self._found[name] = Declared(name.rpartition(".")[0], _KNOWN, None, is_enum)
        for name, referenced in references.items():
            self._collect(referenced, (origins or {}).get(name))
        self._collect(file, _OWN)

    def _collect(self, file: ProtoFile, origin: Origin | None) -> None:
        space = _space(file.package)
        self._collect_extends(file.extends, space)
        for scope, declared in _declared(file.types, space):
            name = ".".join(scope)
            self._found[name] = Declared(file.package, origin, declared, isinstance(declared, Enum))
            if isinstance(declared, Message):
                self._collect_extends(declared.extends, scope)

    def _collect_extends(self, extends: list[Extend], scope: Scope) -> None:
        for extend in extends:
            for field in extend.fields:
                self.extensions[".".join((*scope, field.name))] = field

    def get(self, full_name: str) -> Declared | None:
        return self._found.get(full_name)

    def resolve(self, name: str, scope: Scope) -> str | None:
        """The full name of a type name in a scope: the innermost declaration takes precedence."""
        return _resolved(name, scope, self._found)

    def resolve_extension(self, name: str, scope: Scope) -> str | None:
        return _resolved(name, scope, self.extensions)

    def check(self) -> None:
        """Raises InvalidSchema if the type of a field is not declared."""
        space = _space(self.file.package)
        for scope, declared in _declared(self.file.types, space):
            if isinstance(declared, Message):
                self._check_fields(declared.all_fields(), scope)
                for extend in declared.extends:
                    self._check_fields(extend.fields, scope)
        for extend in self.file.extends:
            self._check_fields(extend.fields, space)

    def _check_fields(self, fields: list[Field], scope: Scope) -> None:
        for field in fields:
            name = field.map_types[1] if field.map_types else field.type
            if field.group is None and name not in SCALARS and self.resolve(name, scope) is None:
                raise InvalidSchema(f"{'.'.join(scope)}.{field.name}: unknown type {name}")


def _space(package: str) -> Scope:
    return tuple(package.split(".")) if package else ()


def _declared(types: list[Message | Enum], scope: Scope) -> Iterator[tuple[Scope, Message | Enum]]:
    for each in types:
        inner = (*scope, each.name)
        yield inner, each
        if isinstance(each, Message):
            yield from _declared(each.types, inner)
            groups = [field.group for field in each.all_fields() if field.group is not None]
            yield from _declared([*groups], inner)


def _resolved(name: str, scope: Scope, found: Mapping[str, object]) -> str | None:
    if name.startswith("."):
        return name[1:] if name[1:] in found else None
    for length in range(len(scope), -1, -1):
        full = ".".join((*scope[:length], name))
        if full in found:
            return full
    return None
