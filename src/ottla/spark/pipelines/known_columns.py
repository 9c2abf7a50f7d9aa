"""The columns of a source, from its definition alone. Pure rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.spark.pipelines.changes.rules import DELETED
from ottla.spark.pipelines.definition import META_COLUMNS

if TYPE_CHECKING:
    from ottla.spark.pipelines.definition import Source


def beside_columns(source: Source) -> tuple[str, ...]:
    """What its rows have beside their own columns."""
    beside = (*META_COLUMNS, *source.format.extra_columns)
    return (*beside, DELETED) if source.has_deletes and DELETED not in beside else beside


def known_columns(source: Source) -> dict[str, str] | None:
    """Its columns that are known without reading the topic."""
    return source.format.columns(source.schema)
