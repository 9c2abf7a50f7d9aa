"""A table of any database with a JDBC driver.

Spark's workers write the rows of a micro-batch into a staging table. The driver then merges it into the
table and notes the micro-batch, in one transaction.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from ottla.columns.abilities import ANY, JSON
from ottla.columns.evolution import AddColumn, TableColumns
from ottla.columns.types import shown, struct_of
from ottla.spark.pipelines.changes.marking import last_per_key
from ottla.spark.pipelines.changes.rules import DELETE, null_key
from ottla.spark.pipelines.evolution.conforming import frame_columns
from ottla.spark.pipelines.evolution.deciding import evolution_for
from ottla.spark.pipelines.jdbc.connection import DatabaseFailed, JdbcConnection
from ottla.spark.pipelines.jdbc.statements import (
    BATCHES,
    IS_DELETE,
    KEY_LENGTH,
    ROW,
    STAGE,
    Merge,
    create,
    create_batches,
    keep_batch,
    last_batch,
)
from ottla.spark.pipelines.sinks.batch import RefusedRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from ottla.columns.types import Struct, Type
    from ottla.spark.pipelines.sinks.batch import MicroBatch
    from ottla.spark.pipelines.sinks.jdbc import JdbcSink

_ATTEMPT: Final = uuid.uuid4().hex[:8]
"""Unique per process: workers of a killed driver may still write to its staging table."""


class JdbcDatabase:
    def __init__(self, sink: JdbcSink) -> None:
        self._sink = sink
        self._options = {**sink.options, "url": sink.url}

    def columns(self) -> TableColumns | None:
        spark = SparkSession.getActiveSession()
        if spark is None:
            return None
        with JdbcConnection(spark, self._options) as connection:
            return _columns(connection, self._sink.table)

    def write(self, frame: DataFrame, batch: MicroBatch) -> int:
        spark = frame.sparkSession
        with JdbcConnection(spark, self._options) as connection:
            if not connection.has_table(BATCHES):
                connection.execute(create_batches())
            last = connection.number(last_batch(batch.query))
            if last is not None and last >= batch.number:
                return 0
            self._evolve(connection, frame_columns(frame))
            return self._merge(connection, frame, batch, is_first=last is None)

    def _evolve(self, connection: JdbcConnection, query: Struct) -> None:
        """Change columns before the transaction, because DDL ends a transaction in many databases. A repeated
        micro-batch finds the new columns.
        """
        table = self._sink.table
        found = _columns(connection, table)
        evolution = evolution_for(self._sink, found, query)
        if found is None:
            columns = [
                (connection.quoted(each.name), self._type(connection, each.name, each.type))
                for each in evolution.columns.fields
            ]
            connection.execute(create(table, columns, [connection.quoted(name) for name in self._sink.key]))
        for change in evolution.changes:
            if isinstance(change, AddColumn):
                [name] = change.path
                connection.add_column(table, name, self._type(connection, name, change.type))

    def _type(self, connection: JdbcConnection, name: str, kind: Type) -> str:
        if kind == "string" and name in self._sink.key:
            return f"VARCHAR({KEY_LENGTH})"
        return connection.type_of("string" if kind == JSON else shown(kind))

    def _merge(
        self,
        connection: JdbcConnection,
        frame: DataFrame,
        batch: MicroBatch,
        *,
        is_first: bool,
    ) -> int:
        sink = self._sink
        names = frame_columns(frame).names
        there = {each.name.lower(): each for each in connection.columns(sink.table)}
        columns = {f"c{at}": there[name.lower()] for at, name in enumerate(names)}
        stage = f"{STAGE}{batch.query[:8]}_{_ATTEMPT}".replace("-", "_")
        self._drop_stages(connection, batch)
        rows = _staged(last_per_key(frame, sink.changes) if sink.key else frame, names)
        declared = {name: kind for name, each in columns.items() if (kind := each.spark_type)}
        self._stage(rows, stage, declared)
        quoted = connection.quoted
        count = connection.number(f"SELECT COUNT(*) FROM {stage}") or 0  # noqa: S608 - a name of ours
        if count != connection.number(f"SELECT COUNT(DISTINCT {quoted(ROW)}) FROM {stage}"):  # noqa: S608 - a name of ours
            raise DatabaseFailed("a task was repeated and its rows were staged twice; the micro-batch is repeated")
        merge = Merge(
            sink.table,
            stage,
            {quoted(name): quoted(each.name) for name, each in columns.items()},
            tuple(quoted(f"c{names.index(name)}") for name in sink.key),
            None if sink.order_by is None else quoted(f"c{names.index(sink.order_by)}"),
            quoted(IS_DELETE),
        )
        bad = self._without_key(connection, frame.sparkSession, merge, names)
        if bad:
            batch.refuse(bad)
        connection.begin()
        for statement in merge.statements(replaces_all=sink.mode == "complete"):
            connection.execute(statement)
        connection.execute(keep_batch(batch.query, batch.number, is_first=is_first))
        connection.commit()
        connection.execute(f"DROP TABLE {stage}")
        return count - len(bad)

    def _stage(self, rows: DataFrame, stage: str, declared: Mapping[str, str]) -> None:
        writer = rows.write.format("jdbc").mode("overwrite").options(**self._options).option("dbtable", stage)
        if declared:
            types = ", ".join(f"{name} {kind}" for name, kind in declared.items())
            writer = writer.option("createTableColumnTypes", types)
        writer.save()

    def _without_key(
        self, connection: JdbcConnection, spark: SparkSession, merge: Merge, names: list[str]
    ) -> list[RefusedRow]:
        lacking = merge.lacking_key()
        if not lacking or not connection.number(f"SELECT COUNT(*) FROM {merge.stage} WHERE {lacking}"):  # noqa: S608 - a name of ours
            return []
        query = f"SELECT {', '.join(merge.columns)} FROM {merge.stage} WHERE {lacking}"  # noqa: S608 - a name of ours
        found = spark.read.format("jdbc").options(**self._options).option("query", query).load().collect()
        rows = [dict(zip(names, row, strict=True)) for row in found]
        return [RefusedRow(row, null_key(row, self._sink.key) or "") for row in rows]

    def _drop_stages(self, connection: JdbcConnection, batch: MicroBatch) -> None:
        """Drop staging tables left by killed drivers."""
        for name in connection.tables(f"{STAGE}{batch.query[:8]}_".replace("-", "_")):
            connection.execute(f"DROP TABLE {name}")


def _columns(connection: JdbcConnection, table: str) -> TableColumns | None:
    """Types are not compared: how a database maps Spark types, and back, depends on the database."""
    if not connection.has_table(table):
        return None
    return TableColumns(struct_of((each.name, ANY) for each in connection.columns(table)))


def _staged(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The rows with the columns of the staging table; nested values as JSON."""
    types = dict(frame.dtypes)
    chosen = []
    for at, name in enumerate(names):
        column = F.col(f"`{name}`")
        is_nested = types[name].startswith(("struct<", "array<", "map<"))
        chosen.append((F.to_json(column) if is_nested else column).alias(f"c{at}"))
    is_delete = F.col(DELETE).cast("int") if DELETE in frame.columns else F.lit(0)
    return frame.select(*chosen, is_delete.alias(IS_DELETE), F.monotonically_increasing_id().alias(ROW))
