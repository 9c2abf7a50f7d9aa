"""Topics in Apache Spark: the data source `format("ottla")`, topics as tables, and a session to use them in.

Needs `pip install ottla[spark]`; tables need `ottla[lake]`, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.spark.environment.session import session

if TYPE_CHECKING:
    from ottla.spark.tables.table import table, table_stream

__all__ = ["session", "table", "table_stream"]


def __getattr__(name: str) -> object:
    # A session must not need pyarrow and pyiceberg, which tables import.
    if name in ("table", "table_stream"):
        from ottla.spark.tables import table as tables

        return getattr(tables, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
