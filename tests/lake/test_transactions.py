"""The metadata of a transaction, as pyiceberg computes it, and how often."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Transaction

from ottla.lake.transactions import TableTransaction

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyiceberg.table.metadata import TableMetadata


def test_the_metadata_is_that_of_pyiceberg_and_is_computed_once_for_each_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = SqlCatalog("test", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", pa.schema([("a", pa.int64())]))
    computed = []
    compute = Transaction.table_metadata.fget
    assert compute is not None

    def counted(self: Transaction) -> TableMetadata:
        computed.append(self)
        result: TableMetadata = compute(self)
        return result

    monkeypatch.setattr(Transaction, "table_metadata", property(counted))
    change = TableTransaction(table)
    before = change.table_metadata
    change.set_properties({"p": "1"})

    assert change.table_metadata is change.table_metadata
    assert change.table_metadata.properties["p"] == "1"
    assert "p" not in before.properties
    assert len(computed) == 2
    assert change.table_metadata.model_copy(update={"last_updated_ms": 0}) == compute(change).model_copy(
        update={"last_updated_ms": 0}
    )
