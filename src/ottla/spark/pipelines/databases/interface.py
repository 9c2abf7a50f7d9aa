"""What a database must be able to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.spark.pipelines.tables.staging import BatchId


class Database(Protocol):
    def write(self, frame: DataFrame, batch: BatchId) -> int:
        """Put a micro-batch into the table, unless it is there; returns how many rows."""
