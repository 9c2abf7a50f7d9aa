"""Whether a table can follow its query, and by which changes. Pure rules.

Columns are matched by name; their order does not matter. What a query no longer writes stays in the table, and is null
in new rows. A type that is narrower than the table's is written as the table's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ottla.columns.abilities import ANY
from ottla.columns.types import Array, Field, Map, Struct, decimal_of, shown

if TYPE_CHECKING:
    from collections.abc import Collection

    from ottla.columns.abilities import Abilities
    from ottla.columns.types import Type

EvolutionPolicy = Literal["add", "widen", "strict"]
_WIDER: Final = (("tinyint", "smallint", "int", "bigint"), ("float", "double"))


@dataclass(frozen=True, slots=True)
class AddColumn:
    path: tuple[str, ...]
    type: Type

    def __str__(self) -> str:
        return f"adds column {'.'.join(self.path)} {shown(self.type)}"


@dataclass(frozen=True, slots=True)
class WidenColumn:
    path: tuple[str, ...]
    before: Type
    after: Type

    def __str__(self) -> str:
        return f"widens column {'.'.join(self.path)} from {shown(self.before)} to {shown(self.after)}"


Change: TypeAlias = AddColumn | WidenColumn


@dataclass(frozen=True, slots=True)
class ColumnMismatch:
    column: str
    reason: str
    cast_to: str = ""
    """The type of the table, if a cast in a step would help."""


@dataclass(frozen=True, slots=True)
class Evolution:
    columns: Struct
    """The columns of the table after the changes; rows written to it must have these."""
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()
    misfits: tuple[ColumnMismatch, ...] = ()
    """If there are any, nothing is changed and nothing is written."""

    @property
    def widened(self) -> frozenset[str]:
        """Columns whose type, or that of a field in them, becomes wider."""
        return frozenset(each.path[0] for each in self.changes if isinstance(each, WidenColumn))

    @property
    def lines(self) -> list[str]:
        return [*map(str, self.changes), *self.notes]


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The current state of a table."""

    columns: Struct
    needed: frozenset[str] = frozenset()
    """Columns that every row must have: of the key, of the partitioning, or without a default."""


def decide(
    table: TableColumns,
    query: Struct,
    policy: EvolutionPolicy,
    abilities: Abilities,
    written_before: Collection[str] | None = None,
) -> Evolution:
    """`written_before` names the columns of the last run: one that vanishes as another appears may be a rename."""
    case = _Case(policy, abilities)
    stored = abilities.stored_columns(query)
    columns = case.merged(table.columns, stored, ())
    dropped = [name for name in table.columns.names if stored.get(name) is None]
    case.drop(table, dropped)
    case.note_rewriting()
    case.refuse_renames(table.columns, dropped if written_before is None else written_before, stored)
    assert isinstance(columns, Struct)  # noqa: S101 - of a struct and a struct
    return Evolution(columns, tuple(case.changes), tuple(case.notes), tuple(case.misfits))


class _Case:
    def __init__(self, policy: EvolutionPolicy, abilities: Abilities) -> None:
        self._policy = policy
        self._abilities = abilities
        self.changes: list[Change] = []
        self.notes: list[str] = []
        self.misfits: list[ColumnMismatch] = []

    def merged(self, table: Type, query: Type, path: tuple[str, ...]) -> Type:
        """The type that the table will have; notes what must change for it."""
        if isinstance(table, Struct) and isinstance(query, Struct):
            return self._structs(table, query, path)
        if isinstance(table, Array) and isinstance(query, Array):
            return Array(self.merged(table.element, query.element, (*path, "element")))
        if isinstance(table, Map) and isinstance(query, Map) and table.key == query.key:
            return Map(table.key, self.merged(table.value, query.value, (*path, "value")))
        return query if table in (query, ANY) else self._other_type(table, query, path)

    def _structs(self, table: Struct, query: Struct, path: tuple[str, ...]) -> Struct:
        fields = [
            Field(each.name, each.type if (new := query.get(each.name)) is None else self._field(each, new, path))
            for each in table.fields
        ]
        if path and (gone := [each.name for each in table.fields if query.get(each.name) is None]):
            self._note_dropped([".".join((*path, name)) for name in gone])
        for each in query.fields:
            if table.get(each.name) is None:
                self._add(table, each, path)
                fields.append(each)
        return Struct(tuple(fields))

    def _field(self, field: Field, new: Type, path: tuple[str, ...]) -> Type:
        return self.merged(field.type, new, (*path, field.name))

    def _add(self, table: Struct, field: Field, path: tuple[str, ...]) -> None:
        place = ".".join((*path, field.name))
        twin = next((name for name in table.names if name.lower() == field.name.lower()), None)
        if twin is not None:
            self.misfits.append(ColumnMismatch(place, f"differs from the table's column {twin} only in case"))
        elif self._policy == "strict":
            self.misfits.append(ColumnMismatch(place, 'is not in the table, and evolution = "strict" adds no columns'))
        else:
            self.changes.append(AddColumn((*path, field.name), field.type))

    def _other_type(self, table: Type, query: Type, path: tuple[str, ...]) -> Type:
        place = ".".join(path)
        if self._policy != "strict" and is_wider(query, table):
            self.notes.append(f"writes column {place} as {shown(table)}, its type in the table")
            return table
        reason = self._why_not_widened(table, query)
        if reason is None:
            self.changes.append(WidenColumn(path, table, query))
            return query
        self.misfits.append(ColumnMismatch(place, reason, shown(table)))
        return table

    def _why_not_widened(self, table: Type, query: Type) -> str | None:
        change = f"{shown(table)} cannot become {shown(query)}"
        if not is_wider(table, query):
            return f"{change}: this is not a safe widening"
        if not self._abilities.can_widen:
            return f"{change} in {self._abilities.title}: {self._abilities.why_not_widen}"
        return None if self._policy == "widen" else f'{change}: it needs evolution = "widen"'

    def note_rewriting(self) -> None:
        if self._abilities.rewrites_to_widen and any(isinstance(each, WidenColumn) for each in self.changes):
            self.notes.append("rewrites all rows of the table with the wider type")

    def drop(self, table: TableColumns, dropped: list[str]) -> None:
        for name in dropped:
            if name in table.needed:
                self.misfits.append(
                    ColumnMismatch(name, "is missing in the query, and every row of the table needs it")
                )
            elif self._policy == "strict":
                self.misfits.append(
                    ColumnMismatch(name, 'is missing in the query, and evolution = "strict" allows no change')
                )
        if self._policy != "strict":
            self._note_dropped([name for name in dropped if name not in table.needed])

    def _note_dropped(self, names: list[str]) -> None:
        self.notes += [f"no longer writes column {name}: it is null in new rows" for name in names]

    def refuse_renames(self, table: Struct, before: Collection[str], query: Struct) -> None:
        gone = [name for name in table.names if name in before and query.get(name) is None]
        new = [change for change in self.changes if isinstance(change, AddColumn) and len(change.path) == 1]
        for name in gone:
            twin = next((each for each in new if each.type == table.get(name)), None)
            if twin is not None:
                new.remove(twin)
                reason = f"vanishes as {twin.path[0]} appears with the same type: a rename would split the column"
                self.misfits.append(ColumnMismatch(name, reason))


def is_wider(narrow: Type, wide: Type) -> bool:
    """Whether every value of one type is a value of the other, in all formats alike."""
    for order in _WIDER:
        if narrow in order and wide in order:
            return order.index(str(narrow)) < order.index(str(wide))
    one, other = decimal_of(narrow), decimal_of(wide)
    return one is not None and other is not None and one[1] == other[1] and one[0] < other[0]
