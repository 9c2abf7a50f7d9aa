"""A micro-batch, as a sink gets it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.spark.pipelines.tables.staging import BatchId

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A row that the sink can never store."""

    row: dict[str, Any]
    reason: str


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Which micro-batch of which query. The same one may be written again after a failure."""

    query: str
    """Spark's id of the query: a new checkpoint has a new one."""
    number: int
    refuse: Callable[[Sequence[RefusedRow]], None]
    """Sends rows to the sink's dead-letter topic; call it once, before the other rows are committed."""

    @property
    def id(self) -> BatchId:
        return BatchId(self.query, self.number)
