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
"""How many of the latest versions of a table stay readable, if a pipeline created it and the sink has no other value.
"""


@dataclass(frozen=True, slots=True)
class CleanupResult:
    """The result of a clean-up."""

    merged_files: int = 0
    new_files: int = 0
    orphans: int = 0


class Table(Protocol):
    def has(self, batch: BatchId) -> bool:
        """Whether this micro-batch is already in the table; completes it if it was partially committed."""

    def columns(self) -> TableColumns | None:
        """The current columns; None if the table does not exist."""

    def stage(self, frame: DataFrame, batch: BatchId) -> list[StagedFile]:
        """Write the rows of a micro-batch beside the table."""

    def commit(self, files: Sequence[StagedFile], batch: BatchId, evolution: Evolution) -> int:
        """Commit staged files, with the required column changes; returns the number of rows."""

    def tidy(self, *, target_file_bytes: int, orphan_age_s: float) -> CleanupResult:
        """Merge small files, and remove unreferenced files of this age."""

    def remove_orphans(self, age_s: float) -> int:
        """Remove unreferenced files of this age; returns the number of data files."""

    def files(self) -> list[str]:
        """The files of the table."""


class MergingTable(Table, Protocol):
    """A table whose rows can be replaced and deleted by key."""

    def stage_changes(self, frame: DataFrame, batch: BatchId) -> Changes:
        """The rows of a micro-batch, with the column DELETE, to be merged by the driver."""

    def merge(self, changes: Changes, batch: BatchId, evolution: Evolution, rule: ChangeRule) -> int:
        """Merge the changes, in one commit with the micro-batch id; returns their number."""
