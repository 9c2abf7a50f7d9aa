"""`kind = "postgresql"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ottla.columns.abilities import JSON, Abilities
from ottla.spark.pipelines.sinks.databases import DatabaseSink

if TYPE_CHECKING:
    from ottla.spark.pipelines.databases.interface import Database


class PostgresqlSink(DatabaseSink, frozen=True, kw_only=True, tag="postgresql"):
    url: str

    summary: ClassVar[str] = "a table, created if it is missing; rows with the same key are replaced"
    abilities: ClassVar[Abilities] = Abilities(
        title="a PostgreSQL table",
        can_widen=True,
        stored_as={"tinyint": "smallint", "variant": JSON},
        nested_as_json=True,
    )
    example: ClassVar[tuple[str, ...]] = (
        "# needs: pip install 'ottla[pipelines]'",
        'url = "postgresql://user:${{PGPASSWORD}}@localhost/db"',
        'table = "{name}"',
        'key = ["{first}"]                # rows with the same key are replaced',
    )

    def database(self) -> Database:
        from ottla.spark.pipelines.databases.postgresql import PostgresDatabase

        return PostgresDatabase(self)
