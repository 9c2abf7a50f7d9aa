"""Tables as `ottla lake` writes them, for tests of their readers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa


def catalog_of(data: Path) -> Any:
    from pyiceberg.catalog import load_catalog

    folder = data / "lake"
    folder.mkdir(exist_ok=True)
    uri = f"sqlite:///{folder / 'catalog.db'}"
    return load_catalog("ottla", type="sql", uri=uri, warehouse=f"file://{folder / 'warehouse'}")


def table_of(data: Path, topic: str, rows: pa.Table, covered: dict[int, int] | None = None) -> Any:
    """Append rows to the table of a topic, which is created if needed."""
    catalog = catalog_of(data)
    catalog.create_namespace_if_not_exists("topics")
    name = ("topics", topic.replace(".", "_"))
    properties = {"ottla.topic": topic, "ottla.content": "records"}
    table = catalog.create_table_if_not_exists(name, rows.schema, properties=properties)
    partitions = {str(partition): offset for partition, offset in (covered or {}).items()}
    offsets = {"ottla.offsets": json.dumps({"topic-id": "", "partitions": partitions})}
    with table.transaction() as changes:
        changes.append(rows, snapshot_properties=offsets)
        changes.set_properties(offsets)
    return table
