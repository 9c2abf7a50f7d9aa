"""Transactions of tables with many snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.table import Transaction

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableUpdate


class TableTransaction(Transaction):  # type: ignore[misc]
    """Computes the metadata once for each staged change.

    pyiceberg does it whenever the metadata is read, about fifteen times in a commit, and copies all snapshots for it.
    """

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._computed: tuple[TableMetadata, tuple[TableUpdate, ...], TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        base, updates, known = self._table.metadata, self._updates, self._computed
        if known is None or known[0] is not base or known[1] is not updates:
            known = self._computed = base, updates, super().table_metadata
        return known[2]
