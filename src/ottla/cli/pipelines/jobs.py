"""`ottla pipeline backfill`, `replay` and `compact`: one-off jobs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.connecting import with_broker_options
from ottla.cli.pipelines.files import load, need_spark, started_spark, with_file, with_master
from ottla.core.errors import ConfigError, OttlaError

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.cli.connecting import Reach
    from ottla.spark.pipelines.definition import Pipeline
    from ottla.spark.pipelines.sinks.tables import TableSink


@click.command(
    epilog="""\b
Examples:
  ottla pipeline backfill orders.toml --from 2026-11-01 --to 2026-11-08
  ottla pipeline backfill orders.toml --from 2h --sink lake
  ottla pipeline backfill orders.toml --from 2026-01-01 --to now --data-dir data
""",
)
@with_file
@click.option("--from", "from_", metavar="TIME", required=True, help="Start time: 2026-11-01T09:30, or 2h ago.")
@click.option("--to", metavar="TIME", default="now", show_default=True, help="End time, exclusive.")
@click.option("--sink", "sinks", multiple=True, metavar="NAME", help="Only this sink; may be repeated.")
@click.option("--data-dir", metavar="DIR", help="Read the segment files of this data folder instead of the broker.")
@with_master
@with_broker_options
def backfill(file: Path, *, reach: Reach, from_: str, to: str, master: str, **options: Any) -> None:
    """Run a pipeline once over the records of a time range."""
    from ottla.spark.pipelines.times import moment_ms

    now_ms = int(time.time() * 1000)
    from_ms, to_ms = moment_ms(from_, now_ms), moment_ms(to, now_ms)
    sinks, data_dir = options.pop("sinks"), options.pop("data_dir")
    pipeline = load(file, reach)
    need_spark()
    from ottla.spark.pipelines.backfill import Backfill, run_backfill

    wanted = Backfill(from_ms=from_ms, to_ms=to_ms, sinks=sinks, data_dir=data_dir)
    spark = started_spark(pipeline, master)
    try:
        run_backfill(spark, pipeline, wanted, click.echo)
    finally:
        spark.stop()


@click.command(
    epilog="""\b
Examples:
  ottla pipeline replay orders.toml --to orders-again --timestamp written_at
  ottla pipeline replay orders.toml --sink lake --to test --where 'id = 7' --key id
""",
)
@with_file
@click.option("--to", "topic", metavar="TOPIC", required=True, help="Target topic.")
@click.option("--sink", "name", metavar="NAME", help="Sink whose table is read, if there are several.")
@click.option("--timestamp", default="timestamp", show_default=True, metavar="COLUMN", help="A row's time.")
@click.option("--key", metavar="COLUMN", help="The record's key [default: key, if there is such a column].")
@click.option("--value", metavar="COLUMN", help="The record's value [default: value, or all columns as JSON].")
@click.option("--where", metavar="SQL", help="SQL condition of the rows.")
@with_master
@with_broker_options
def replay(file: Path, *, reach: Reach, name: str | None, master: str, **options: Any) -> None:
    """Produce the rows of a pipeline's table to TOPIC, in order and with their timestamps."""
    need_spark()
    from ottla.spark.pipelines.preparing import kafka_of
    from ottla.spark.pipelines.replay import Replay, replay_rows, table_frame

    wanted = Replay(**{key: options.pop(key) for key in ("topic", "timestamp", "key", "value", "where")})
    pipeline = load(file, reach)
    sink = _one_table(pipeline, name)
    spark = started_spark(pipeline, master)
    try:
        replay_rows(table_frame(spark, sink), wanted, kafka_of(pipeline))
    finally:
        spark.stop()
    click.echo(f"{sink.name} is written to {wanted.topic}")


@click.command(
    epilog="""\b
Examples:
  ottla pipeline compact orders.toml
  ottla pipeline compact orders.toml --sink lake --orphan-age 1d
""",
)
@with_file
@click.option("--sink", "name", metavar="NAME", help="Only this table.")
@click.option(
    "--orphan-age", default="1h", show_default=True, metavar="TIME", help="Keep orphaned files younger than this."
)
@with_broker_options
def compact(file: Path, *, reach: Reach, name: str | None, orphan_age: str) -> None:
    """Compact a pipeline's tables and remove orphaned files, without Spark."""
    from ottla.spark.pipelines.fields import duration_ms

    age_ms = duration_ms(orphan_age)
    if age_ms is None:
        raise ConfigError(f"--orphan-age: {orphan_age!r} is not a valid duration (use e.g. 1h)")
    pipeline = load(file, reach)
    tables = _tables(pipeline, name)
    _refuse_replaced(pipeline, tables)
    for sink in tables:
        done = sink.tidy(orphan_age_s=age_ms / 1000)
        click.echo(
            f"{sink.name}: {done.merged_files} small files became {done.new_files}, {done.orphans} orphans removed"
        )


@click.command(
    epilog="""\b
Examples:
  ottla pipeline redrive orders.toml
  ottla pipeline redrive --where 'partition = 0' orders.toml
""",
)
@with_file
@click.option(
    "--where",
    metavar="EXPR",
    help="Only those for which this SQL expression (SQLite) is true; columns: reason, topic, partition, offset, "
    "timestamp (ms), key, value.",
)
@with_broker_options
def redrive(file: Path, *, where: str | None, reach: Reach) -> None:
    """Send the dead letters of a pipeline's sources back to their topics, each once. Needs no Spark."""
    from ottla.spark.pipelines.redriving import redrive as send_back

    pipeline = load(file, reach)
    done = send_back(pipeline, where)
    click.echo(f"{pipeline.name}: {done.sent} records sent back")
    if done.left:
        click.echo(f"{done.left} dead letters not chosen; a later redrive may send them", err=True)
    if done.rows:
        click.echo(f"{done.rows} other dead letters skipped: rows that a sink refused, or of other pipelines", err=True)
    if done.gone:
        click.echo(f"{done.gone} records were cut, and are no longer in their topic", err=True)


def _refuse_replaced(pipeline: Pipeline, tables: list[TableSink]) -> None:
    """Two processes that replace the same files of a plain folder would write their rows twice."""
    from ottla.spark.pipelines.state_folder import StateFolder

    if not StateFolder(pipeline.state).is_held():
        return
    for sink in tables:
        if sink.replaces_files:
            raise OttlaError(
                f"[sink.{sink.name}]: {pipeline.name} is running and replaces files of this folder; stop it first"
            )


def _tables(pipeline: Pipeline, name: str | None) -> list[TableSink]:
    from ottla.spark.pipelines.sinks.tables import TableSink

    tables = [sink for sink in pipeline.sinks.values() if isinstance(sink, TableSink) and name in (None, sink.name)]
    if not tables:
        raise ConfigError(f"{pipeline.file} has no table {name or 'at all'}: no Parquet, Delta or Iceberg sink")
    return tables


def _one_table(pipeline: Pipeline, name: str | None) -> TableSink:
    tables = _tables(pipeline, name)
    if len(tables) > 1:
        raise ConfigError(f"--sink: say which table; there are {', '.join(sink.name for sink in tables)}")
    return tables[0]
