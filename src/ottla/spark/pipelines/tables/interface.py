"""The interface of all table formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from ottla.columns.evolution import Evolution, TableColumns
    from ottla.spark.pipelines.changes.rules import ChangeRule
    from ottla.spark.pipelines.tables.changes import Changes
    from ottla.spark.pipelines.tables.staging import BatchId, StagedFile

KEEP_VERSIONS: Final = 10
"""Of a table that a pipeline created: how many of its last versions can be read, unless the sink says otherwise."""


@dataclass(frozen=True, slots=True)
class Tidied:
    """The result of a clean-up."""

    merged_files: int = 0
    new_files: int = 0
    orphans: int = 0


class Table(Protocol):
    def has(self, batch: BatchId) -> bool:
        """Whether this micro-batch is in the table already; finishes it if it is there by half."""

    def columns(self) -> TableColumns | None:
        """The columns it has now; None if there is no such table yet."""

    def stage(self, frame: DataFrame, batch: BatchId) -> list[StagedFile]:
        """Write the rows of a micro-batch beside the table."""

    def commit(self, files: Sequence[StagedFile], batch: BatchId, evolution: Evolution) -> int:
        """Put staged files into the table, with the changes that its columns need; returns how many rows."""

    def tidy(self, *, target_file_bytes: int, orphan_age_s: float) -> Tidied:
        """Merge small files, and remove those that belong to nothing and are so old."""

    def remove_orphans(self, age_s: float) -> int:
        """Remove files of that age which belong to nothing; returns how many data files."""

    def files(self) -> list[str]:
        """The files that the table consists of."""


class MergingTable(Table, Protocol):
    """One whose rows can be replaced and deleted by key."""

    def stage_changes(self, frame: DataFrame, batch: BatchId) -> Changes:
        """The rows of a micro-batch with DELETE, for the driver to merge."""

    def merge(self, changes: Changes, batch: BatchId, evolution: Evolution, rule: ChangeRule) -> int:
        """Make the changes, in the commit that knows the micro-batch; returns how many."""
