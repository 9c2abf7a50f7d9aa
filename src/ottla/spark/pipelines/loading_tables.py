"""`[table.NAME]`: static lookup tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.spark.pipelines.definition import StaticTable

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.spark.pipelines.fields import Fields

_FORMATS: Final = ("parquet", "csv", "json", "delta", "jdbc")
_OF_JDBC: Final = ("url", "table", "query", "jars")


def read_table(name: str, fields: Fields, folder: Path) -> StaticTable:
    format_ = fields.one_of("format", _FORMATS, "parquet")
    path = fields.text("path", needed=format_ != "jdbc")
    table = StaticTable(
        name=name,
        format=format_,  # type: ignore[arg-type]
        path=beside(folder, path) if path else "",
        schema=fields.text("schema") or None,
        options=fields.settings("options"),
        url=fields.text("url", needed=format_ == "jdbc"),
        table=fields.text("table"),
        query=fields.text("query"),
        jars=read_jars(fields, folder),
        refresh_ms=fields.duration_ms("refresh", None),
    )
    _check(table, fields)
    return table


def _check(table: StaticTable, fields: Fields) -> None:
    if table.format == "jdbc":
        if bool(table.table) == bool(table.query):
            fields.wrong("", "a jdbc table needs table or query, and not both")
        if fields.has("path") or fields.has("schema"):
            fields.wrong("path" if fields.has("path") else "schema", "a jdbc table has none; the database knows it")
        if fields.has("refresh"):
            fields.wrong("refresh", "a jdbc table cannot be refreshed: every micro-batch reads it again")
        return
    for key in _OF_JDBC:
        if fields.has(key):
            fields.wrong(key, f'is for format = "jdbc"; this one is {table.format}')


def read_jars(fields: Fields, folder: Path) -> tuple[str, ...]:
    """Jars that Spark needs for a driver."""
    jars = tuple(beside(folder, each) for each in fields.names("jars"))
    for jar in jars:
        if "://" not in jar and not (folder / jar).is_file():
            fields.wrong("jars", f"there is no file {jar}")
    return jars


def beside(folder: Path, path: str) -> str:
    """A path relative to the pipeline's file."""
    return path if "://" in path else str(folder / path)
