"""`kind = "iceberg"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from ottla.columns.abilities import Abilities
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.sinks.tables import MergingTableSink
from ottla.spark.pipelines.stores.addresses import is_address, is_in_store, why_wrong
from ottla.spark.pipelines.stores.secrets import redacted, secrets_of

if TYPE_CHECKING:
    from ottla.spark.pipelines.fields import Fields
    from ottla.spark.pipelines.tables.interface import Table


class IcebergSink(MergingTableSink, frozen=True, kw_only=True, tag="iceberg"):
    table: str
    """NAMESPACE.NAME in the catalog."""
    catalog: dict[str, str] = msgspec.field(default_factory=dict)
    """Given to pyiceberg; empty for a SQLite file in `path`."""

    names_partitions_by_folders: ClassVar[bool] = False
    summary: ClassVar[str] = (
        "an Iceberg table, by pyiceberg; its catalog is `path/catalog.db`, named `ottla`, "
        "or the one described by `catalog`"
    )
    abilities: ClassVar[Abilities] = Abilities(
        title="an Iceberg table",
        can_widen=True,
        stored_as={"tinyint": "int", "smallint": "int"},
    )
    example: ClassVar[tuple[str, ...]] = (
        "# needs: pip install 'ottla[pipelines]'",
        'path = "warehouse"',
        'table = "shop.{name}"',
        '# partition_by = "day"',
        '# key = ["{first}"]                # rows with the same key are replaced',
    )

    @property
    def place(self) -> str:
        return f"{self.path}:{self.table}"

    def check(self, fields: Fields) -> None:
        super().check(fields)
        if self.table and self.table.count(".") != 1:
            fields.wrong("table", f"{self.table!r} must be a namespace and a name, such as shop.orders")
        if is_address(self.path) and why_wrong(self.path) is None and not self.catalog:
            fields.wrong(
                "catalog",
                "a table in an object store needs one, such as "
                '{ type = "rest", uri = "https://…" }, or type sql, glue or hive',
            )

    def check_access(self) -> None:
        super().check_access()
        if not is_in_store(self.path):
            return
        try:
            self.columns()
        except Exception as refused:  # noqa: BLE001 - each catalog has other error classes
            said = redacted(f"{type(refused).__name__}: {refused}".partition("\n")[0], secrets_of([self]))
            raise ConfigError(f"[sink.{self.name}] catalog: cannot be used: {said}") from None

    def check_libraries(self) -> None:
        from ottla.spark.pipelines.tables.iceberg import imported_load_catalog

        imported_load_catalog()

    def open_table(self) -> Table:
        from ottla.spark.pipelines.tables.iceberg import IcebergTable

        return IcebergTable(self, self.files())
