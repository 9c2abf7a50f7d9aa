"""The columns of a source, from its definition alone. Rules only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.spark.pipelines.avro_schema import avro_columns
from ottla.spark.pipelines.changes.debezium import CHANGE_COLUMNS
from ottla.spark.pipelines.changes.rules import DELETED
from ottla.spark.pipelines.ddl import columns
from ottla.spark.pipelines.definition import META_COLUMNS

if TYPE_CHECKING:
    from ottla.spark.pipelines.definition import Source


def beside_columns(source: Source) -> tuple[str, ...]:
    """What its rows have beside their own columns."""
    if source.format == "debezium":
        return (*META_COLUMNS, *CHANGE_COLUMNS)
    return (*META_COLUMNS, DELETED) if source.has_deletes else META_COLUMNS


def known_columns(source: Source) -> dict[str, str] | None:
    """Its columns that are known without reading the topic."""
    if source.format == "raw":
        return {"key": "binary", "value": "binary", "headers": "array<struct<key:string,value:binary>>"}
    if source.schema is None:
        return None
    return avro_columns(source.schema) if source.format == "avro" else columns(source.schema)
