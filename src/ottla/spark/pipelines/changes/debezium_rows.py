"""Records of Debezium as rows of Spark's: upserts and deletes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from ottla.spark.pipelines.changes.debezium import CHANGE_COLUMNS, DELETION, UPSERTS, WRAPPER, envelope_ddl
from ottla.spark.pipelines.changes.record_keys import key_columns
from ottla.spark.pipelines.ddl import columns, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column

    from ottla.spark.pipelines.definition import Source

_TIMES: Final = {False: ("source.ts_ms", "ts_ms"), True: ("__source_ts_ms", "__ts_ms")}


class DebeziumRows:
    """The columns of a source's rows, from the parsed record in the column `parsed`."""

    def __init__(self, source: Source, parsed: str) -> None:
        self._source = source
        self._parsed = parsed
        self._types = columns(source.schema or "")
        self._has_wrapper = WRAPPER not in self._types or not source.flattened

    @property
    def ddl(self) -> str:
        row = ", ".join(f"{quoted(name)} {kind}" for name, kind in self._types.items())
        return envelope_ddl(row, has_wrapper=self._has_wrapper, is_flattened=self._source.flattened)

    def is_no_change(self) -> Column:
        """Of a record that has a value and is JSON."""
        if self._source.flattened:
            return F.lit(False)  # noqa: FBT003 - a literal of Spark's
        op = self._field("op")
        is_upsert = op.isin(*UPSERTS) & self._field("after").isNotNull()
        return ~F.coalesce(is_upsert | (op == DELETION), F.lit(False))  # noqa: FBT003 - a literal of Spark's

    def columns(self) -> list[Column]:
        is_deleted = self._is_deleted()
        keys = key_columns({name: kind for name, kind in self._types.items() if self._may_be_key(name, kind)})
        found = []
        for name in self._types:
            old = self._old(name)
            gone = F.coalesce(keys[name], old) if name in keys else old
            found.append(F.when(is_deleted, gone).otherwise(self.new_value(name)).alias(name))
        times = [F.timestamp_millis(self._field(name)) for name in _TIMES[self._source.flattened]]
        told = (is_deleted, self._op(), F.coalesce(*times))
        return [*found, *(column.alias(name) for name, column in zip(CHANGE_COLUMNS, told, strict=True))]

    def empty_columns(self) -> Column:
        """The names of columns that the parser left empty."""
        is_deleted = self._is_deleted()
        values = {name: F.when(is_deleted, self._old(name)).otherwise(self.new_value(name)) for name in self._types}
        names = [F.when(value.isNull(), F.lit(name)) for name, value in values.items() if "`" not in name]
        return F.array_compact(F.array(*names))

    def _may_be_key(self, name: str, kind: str) -> bool:
        return name in self._source.key if self._source.key else "<" not in kind and kind != "variant"

    def _is_deleted(self) -> Column:
        if self._source.flattened:
            says_so = F.lower(self._field("__deleted")) == "true"
        else:
            says_so = self._field("op") == DELETION
        return F.col("value").isNull() | F.coalesce(says_so, F.lit(False))  # noqa: FBT003 - a literal of Spark's

    def _op(self) -> Column:
        return F.when(F.col("value").isNull(), DELETION).otherwise(
            self._field("__op" if self._source.flattened else "op")
        )

    def new_value(self, name: str) -> Column:
        return self._field(quoted(name) if self._source.flattened else f"after.{quoted(name)}")

    def _old(self, name: str) -> Column:
        return self._field(quoted(name) if self._source.flattened else f"before.{quoted(name)}")

    def _field(self, path: str) -> Column:
        direct = F.col(f"{self._parsed}.{path}")
        return F.coalesce(F.col(f"{self._parsed}.{WRAPPER}.{path}"), direct) if self._has_wrapper else direct
