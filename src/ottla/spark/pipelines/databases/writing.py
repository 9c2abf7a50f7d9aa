"""A micro-batch into a database, by any driver of Python's: all of it or nothing, and once."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ottla.spark.pipelines.databases.statements import create, create_batches, keep_batch, last_batch, name, upsert

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

    from ottla.spark.pipelines.definition import Sink
    from ottla.spark.pipelines.tables.staging import BatchId

_ROWS_AT_ONCE: Final = 1000


class Dialect:
    """What differs between databases."""

    def __init__(self, placeholder: str, type_of: Callable[[str], str], value_of: Callable[[Any], Any]) -> None:
        self.placeholder = placeholder
        self.type_of = type_of
        self.value_of = value_of


def write_once(cursor: Any, frame: DataFrame, sink: Sink, batch: BatchId, dialect: Dialect) -> int:  # noqa: ANN401
    """In the transaction that the cursor is in. Rows pass through the driver, some at a time."""
    mark = dialect.placeholder
    cursor.execute(create_batches())
    cursor.execute(last_batch(mark), (batch.query,))
    last = cursor.fetchone()
    if last is not None and last[0] >= batch.number:
        return 0
    columns = [(field.name, dialect.type_of(field.dataType.simpleString())) for field in frame.schema.fields]
    cursor.execute(create(sink.table, columns, sink.key))
    if sink.mode == "complete":
        cursor.execute(f"DELETE FROM {name(sink.table)}")  # noqa: S608 - quoted
    statement = upsert(sink.table, frame.columns, sink.key, mark)
    count = 0
    for rows in _some_at_a_time(frame.toLocalIterator()):
        cursor.executemany(statement, [[dialect.value_of(value) for value in row] for row in rows])
        count += len(rows)
    cursor.execute(keep_batch(mark), (batch.query, batch.number))
    return count


def _some_at_a_time(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        yield some


def as_json(value: Any) -> str:  # noqa: ANN401 - rows, lists and maps of Spark's
    """What has no column type of its own."""
    return json.dumps(value, default=_plain)


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever is in it
    return value.asDict() if hasattr(value, "asDict") else str(value)


def is_nested(value: Any) -> bool:  # noqa: ANN401 - of a row
    return isinstance(value, list | dict) or hasattr(value, "asDict")
