"""`kind = "delta"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ottla.columns.abilities import Abilities
from ottla.spark.pipelines.sinks.tables import MergingTableSink

if TYPE_CHECKING:
    from ottla.spark.pipelines.tables.interface import Table


class DeltaSink(MergingTableSink, frozen=True, kw_only=True, tag="delta"):
    summary: ClassVar[str] = "a Delta table, by the package deltalake"
    abilities: ClassVar[Abilities] = Abilities(
        title="a Delta table",
        can_widen=True,
        rewrites_to_widen=True,
        stored_as={},
    )
    example: ClassVar[tuple[str, ...]] = (
        "# needs: pip install 'ottla[pipelines]'",
        'path = "{name}"',
        '# path = "s3://bucket/{name}"     # or gs://, abfs://; see "Object stores" in docs/pipelines.md',
        '# partition_by = "day"',
        '# key = ["{first}"]                # rows with the same key are replaced',
    )

    def check_libraries(self) -> None:
        from ottla.spark.pipelines.tables.delta import imported_deltalake

        imported_deltalake()

    def open_table(self) -> Table:
        from ottla.spark.pipelines.tables.delta import DeltaTable

        return DeltaTable(self.files(), self.partition_by, self.keep_versions)
