"""The SQL of JDBC sinks: only what every database understands. Pure rules.

The rows of a micro-batch are in a staging table, with columns c0, c1, … and two internal ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BATCHES: Final = "ottla_batches"
STAGE: Final = "ottla_stage_"
IS_DELETE: Final = "is_delete"
ROW: Final = "row_number_"
"""Identifies rows that were staged twice by a task that was repeated after its commit."""
KEY_LENGTH: Final = 255
"""The length of text columns in a key: most databases cannot index text of unlimited length."""
_CHARACTERS: Final = (1, 12, -15, -9)
"""CHAR, VARCHAR, NCHAR, NVARCHAR in java.sql.Types."""
_MOST_CHARACTERS: Final = 30_000


@dataclass(frozen=True, slots=True)
class DatabaseColumn:
    name: str
    type: int
    """Of java.sql.Types."""
    precision: int

    @property
    def spark_type(self) -> str | None:
        """The column type that Spark declares in the staging table; None for Spark's default."""
        if self.type in _CHARACTERS and 0 < self.precision <= _MOST_CHARACTERS:
            return f"varchar({self.precision})"
        return None


@dataclass(frozen=True, slots=True)
class Merge:
    """Statements that move rows from the staging table to the table, in one transaction."""

    table: str
    stage: str
    columns: Mapping[str, str]
    """Columns of the staging table and their names in the table, both quoted, as Spark creates them."""
    key: tuple[str, ...] = ()
    """Columns of the stage."""
    order_by: str | None = None
    is_delete: str = IS_DELETE

    def statements(self, *, replaces_all: bool) -> list[str]:
        return [*self._removals(replaces_all=replaces_all), self._insert()]

    def lacking_key(self) -> str:
        return " OR ".join(f"{name} IS NULL" for name in self.key)

    def _removals(self, *, replaces_all: bool) -> list[str]:
        if replaces_all:
            return [f"DELETE FROM {self.table}"]  # noqa: S608 - the user's own name
        if not self.key:
            return []
        found = [f"DELETE FROM {self.table} WHERE EXISTS (SELECT 1 FROM {self.stage} WHERE {self._same_key()})"]  # noqa: S608 - the user's own name
        if self.order_by is None:
            return found
        stored, given = f"{self.table}.{self.columns[self.order_by]}", f"{self.stage}.{self.order_by}"
        is_stale = f"{stored} IS NOT NULL AND ({given} IS NULL OR {given} < {stored})"
        stale = f"EXISTS (SELECT 1 FROM {self.table} WHERE {self._same_key()} AND {is_stale})"  # noqa: S608 - the user's own name
        return [f"DELETE FROM {self.stage} WHERE {stale}", *found]  # noqa: S608 - a name of ours

    def _same_key(self) -> str:
        return " AND ".join(f"{self.stage}.{name} = {self.table}.{self.columns[name]}" for name in self.key)

    def _insert(self) -> str:
        conditions = [f"{self.is_delete} = 0", *(f"{name} IS NOT NULL" for name in self.key)]
        return (
            f"INSERT INTO {self.table} ({', '.join(self.columns.values())}) "  # noqa: S608 - the user's own name
            f"SELECT {', '.join(self.columns)} FROM {self.stage} WHERE {' AND '.join(conditions)}"
        )


def create(table: str, columns: Sequence[tuple[str, str]], key: Sequence[str]) -> str:
    """`columns` and `key` with names in quotes."""
    parts = [f"{name} {kind}{' NOT NULL' if name in key else ''}" for name, kind in columns]
    if key:
        parts.append(f"PRIMARY KEY ({', '.join(key)})")
    return f"CREATE TABLE {table} ({', '.join(parts)})"


def create_batches() -> str:
    return f"CREATE TABLE {BATCHES} (query_id VARCHAR(100) NOT NULL, batch BIGINT NOT NULL, PRIMARY KEY (query_id))"


def last_batch(query: str) -> str:
    return f"SELECT batch FROM {BATCHES} WHERE query_id = '{query}'"  # noqa: S608 - Spark's id


def keep_batch(query: str, number: int, *, is_first: bool) -> str:
    if is_first:
        return f"INSERT INTO {BATCHES} (query_id, batch) VALUES ('{query}', {number})"  # noqa: S608 - Spark's id
    return f"UPDATE {BATCHES} SET batch = {number} WHERE query_id = '{query}'"  # noqa: S608 - Spark's id
