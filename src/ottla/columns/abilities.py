"""Schema changes that a kind of sink supports, and its mapping of Spark's types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.columns.types import Array, Map, Struct, struct_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.columns.types import Type

ANY: Final = "any"
"""A column of a table made elsewhere whose type we do not know: the database decides row by row."""
JSON: Final = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    title: str
    """The kind of table, with its article."""
    can_widen: bool
    """Change a column to a wider type."""
    stored_as: Mapping[str, str]
    """Types of Spark that become another type."""
    nested_as_json: bool = False
    rewrites_to_widen: bool = False
    """Existing rows are written again with the wider type."""
    why_not_widen: str = ""
    ignores_case: bool = False
    """Of the names of columns."""

    def stored(self, kind: Type) -> Type:
        if isinstance(kind, str):
            return self.stored_as.get(kind, kind)
        if self.nested_as_json:
            return JSON
        if isinstance(kind, Struct):
            return struct_of((each.name, self.stored(each.type)) for each in kind.fields)
        if isinstance(kind, Array):
            return Array(self.stored(kind.element))
        return Map(self.stored(kind.key), self.stored(kind.value))

    def stored_columns(self, columns: Struct) -> Struct:
        return struct_of((field.name, self.stored(field.type)) for field in columns.fields)
