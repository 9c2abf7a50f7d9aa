"""`kind = "sqlite"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ottla.columns.abilities import JSON, Abilities
from ottla.spark.pipelines.keys import FilePath
from ottla.spark.pipelines.sinks.databases import DatabaseSink
from ottla.spark.pipelines.stores.addresses import is_address

if TYPE_CHECKING:
    from ottla.spark.pipelines.databases.interface import Database
    from ottla.spark.pipelines.fields import Fields


class SqliteSink(DatabaseSink, frozen=True, kw_only=True, tag="sqlite"):
    path: FilePath

    summary: ClassVar[str] = "the same in a file"
    abilities: ClassVar[Abilities] = Abilities(
        title="a SQLite table",
        can_widen=True,
        stored_as={"variant": JSON},
        nested_as_json=True,
    )
    example: ClassVar[tuple[str, ...]] = (
        'path = "{name}.db"',
        'table = "{name}"',
        'key = ["{first}"]                # rows with the same key are replaced',
    )

    @property
    def place(self) -> str:
        return f"{self.path}:{self.table}"

    def check(self, fields: Fields) -> None:
        super().check(fields)
        if is_address(self.path):
            fields.wrong("path", f"a {self.kind} sink writes a file on this machine; give its path without a scheme")

    def why_unordered(self, column: str, kind: str) -> str | None:
        if not kind.startswith("decimal"):
            return None
        return f"SQLite stores the {kind} {column} as text, which has another order; cast it to bigint or double"

    def database(self) -> Database:
        from ottla.spark.pipelines.databases.sqlite import SqliteDatabase

        return SqliteDatabase(self)
