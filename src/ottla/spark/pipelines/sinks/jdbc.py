"""`kind = "jdbc"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from ottla.columns.abilities import JSON, Abilities
from ottla.spark.pipelines.keys import JarFiles
from ottla.spark.pipelines.sinks.databases import DatabaseSink

if TYPE_CHECKING:
    from ottla.spark.pipelines.databases.interface import Database
    from ottla.spark.pipelines.fields import Fields


class JdbcSink(DatabaseSink, frozen=True, kw_only=True, tag="jdbc"):
    url: str
    options: dict[str, str] = msgspec.field(default_factory=dict)
    """Spark's options of JDBC, such as user, password and driver."""
    jars: JarFiles = ()
    """Java archives with the database's driver."""

    summary: ClassVar[str] = "a table of [any database with a JDBC driver](#databases-with-a-jdbc-driver)"
    abilities: ClassVar[Abilities] = Abilities(
        title="a database table",
        can_widen=False,
        stored_as={"variant": JSON},
        nested_as_json=True,
        why_not_widen="not every database can change the type of a column; alter the table yourself",
        ignores_case=True,
    )

    @property
    def jar_files(self) -> tuple[str, ...]:
        return self.jars

    def check(self, fields: Fields) -> None:
        super().check(fields)
        if not self.url.startswith("jdbc:"):
            fields.wrong("url", f"{self.url.partition(':')[0]!r}… must begin with jdbc:, such as jdbc:mysql://host/db")

    def database(self) -> Database:
        from ottla.spark.pipelines.jdbc.database import JdbcDatabase

        return JdbcDatabase(self)
