"""The database of a sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.spark.pipelines.databases.interface import Database
    from ottla.spark.pipelines.definition import Sink


def database_of(sink: Sink) -> Database:
    if sink.kind == "sqlite":
        from ottla.spark.pipelines.databases.sqlite import SqliteDatabase

        return SqliteDatabase(sink)
    if sink.kind == "jdbc":
        from ottla.spark.pipelines.jdbc.database import JdbcDatabase

        return JdbcDatabase(sink)
    from ottla.spark.pipelines.databases.postgresql import PostgresDatabase

    return PostgresDatabase(sink)
