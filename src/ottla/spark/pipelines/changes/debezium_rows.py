"""Debezium records as rows: upserts and deletes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from ottla.columns.ddl import columns, quoted
from ottla.spark.pipelines.changes.debezium import CHANGE_COLUMNS, DELETION, UPSERTS, WRAPPER, envelope_ddl
from ottla.spark.pipelines.changes.record_keys import key_columns
from ottla.spark.pipelines.formats.parser import PARSED, TASK, TextParser, text_options, with_corrupt

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ottla.spark.pipelines.definition import Source
    from ottla.spark.pipelines.formats.debezium_records import DebeziumFormat

_TIMES: Final = {False: ("source.ts_ms", "ts_ms"), True: ("__source_ts_ms", "__ts_ms")}


class DebeziumParser(TextParser):
    hidden = ()

    def __init__(self, source: Source, form: DebeziumFormat) -> None:
        super().__init__(source)
        self._form = form
        self._is_flattened = form.flattened
        self._types = columns(self.schema)
        self._has_wrapper = WRAPPER not in self._types or not form.flattened

    def parse(self, raw: DataFrame) -> DataFrame:
        row = ", ".join(f"{quoted(name)} {kind}" for name, kind in self._types.items())
        envelope = envelope_ddl(row, has_wrapper=self._has_wrapper, is_flattened=self._is_flattened)
        text = F.col("value").cast("string")
        parsed = F.from_json(text, with_corrupt(envelope), text_options(self._form.options))
        return raw.withColumns({PARSED: parsed, TASK: F.spark_partition_id()})

    def fails(self) -> Column:
        return super().fails() | self._is_no_change()

    def _is_no_change(self) -> Column:
        """Of a record that has a value and is JSON."""
        if self._is_flattened:
            return F.lit(False)  # noqa: FBT003 - a literal of Spark's
        op = self._field("op")
        is_upsert = op.isin(*UPSERTS) & self._field("after").isNotNull()
        return ~F.coalesce(is_upsert | (op == DELETION), F.lit(False))  # noqa: FBT003 - a literal of Spark's

    def rows(self) -> list[Column | str]:
        is_deleted = self._is_deleted()
        keys = key_columns({name: kind for name, kind in self._types.items() if self._may_be_key(name, kind)})
        found: list[Column | str] = []
        for name in self._types:
            old = self._old(name)
            gone = F.coalesce(keys[name], old) if name in keys else old
            found.append(F.when(is_deleted, gone).otherwise(self.value_of(name)).alias(name))
        times = [F.timestamp_millis(self._field(name)) for name in _TIMES[self._is_flattened]]
        values = (is_deleted, self._op(), F.coalesce(*times))
        return [*found, *(column.alias(name) for name, column in zip(CHANGE_COLUMNS, values, strict=True))]

    def null_columns(self) -> Column:
        is_deleted = self._is_deleted()
        values = {name: F.when(is_deleted, self._old(name)).otherwise(self.value_of(name)) for name in self._types}
        names = [F.when(value.isNull(), F.lit(name)) for name, value in values.items() if "`" not in name]
        return F.array_compact(F.array(*names))

    def _may_be_key(self, name: str, kind: str) -> bool:
        return name in self.source.key if self.source.key else "<" not in kind and kind != "variant"

    def _is_deleted(self) -> Column:
        says_so = F.lower(self._field("__deleted")) == "true" if self._is_flattened else self._field("op") == DELETION
        return F.col("value").isNull() | F.coalesce(says_so, F.lit(False))  # noqa: FBT003 - a literal of Spark's

    def _op(self) -> Column:
        return F.when(F.col("value").isNull(), DELETION).otherwise(self._field("__op" if self._is_flattened else "op"))

    def value_of(self, column: str) -> Column:
        return self._field(quoted(column) if self._is_flattened else f"after.{quoted(column)}")

    def event_time(self, column: str) -> Column:
        # A flattened delete has the old row: as a dead letter it would leave that row in the table.
        return F.when(~self._is_deleted(), self.value_of(column))

    def _old(self, name: str) -> Column:
        return self._field(quoted(name) if self._is_flattened else f"before.{quoted(name)}")

    def _field(self, path: str) -> Column:
        direct = F.col(f"{PARSED}.{path}")
        return F.coalesce(F.col(f"{PARSED}.{WRAPPER}.{path}"), direct) if self._has_wrapper else direct
