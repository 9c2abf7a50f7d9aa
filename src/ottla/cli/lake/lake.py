"""`ottla lake`: topics as Iceberg tables."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.connecting import with_broker_options
from ottla.cli.durations import Duration
from ottla.cli.output import show_rows, with_output_option
from ottla.cli.server.stopping import StopSignal
from ottla.cli.summaries import CommandGroup
from ottla.cli.tables import counted
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.cli.connecting import Reach
    from ottla.lake.catalogs import LakeSettings
    from ottla.lake.running import LakeRun
    from ottla.lake.writer import Done, TopicSettings

EXAMPLES = """\b
Examples:
  ottla lake run orders                                               (values as they are, until Ctrl-C)
  ottla lake run orders --values json --columns 'id bigint, amount double, at timestamp'
  ottla lake run orders --values registry --registry http://localhost:8082/schema-registry
  ottla lake run orders payments --partition-by 'day(_timestamp)' --commit-interval 30s
  ottla lake run orders --warehouse s3://bucket/lake --catalog type=rest --catalog uri=https://catalog
  ottla lake status
"""
STATUS_EXAMPLES = """\b
Examples:
  ottla lake status
  ottla lake status --dir data/lake -o json
"""


@click.group(cls=CommandGroup, epilog=EXAMPLES)
def lake() -> None:
    """Maintain topics as Iceberg tables.

    Each committed record is in its table exactly once, even after kills. Spark, DuckDB, Trino, PyIceberg and others
    read the tables; the columns _partition, _offset, _timestamp, _key and _headers come before those of the values.
    """


def _with_place(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--namespace", default="topics", show_default=True, help="Namespace of the tables."),
        click.option(
            "--catalog",
            "catalog",
            multiple=True,
            metavar="KEY=VALUE",
            help="Property of the catalog for pyiceberg, such as type=rest; repeatable. [default: SQLite in --dir]",
        ),
        click.option(
            "--warehouse", default="", metavar="DIR|URL", help="Place of the data files. [default: warehouse in --dir]"
        ),
        click.option(
            "--dir",
            "folder",
            type=click.Path(path_type=Path, file_okay=False),
            default=Path("lake"),
            show_default=True,
            help="Folder of the catalog (catalog.db) and the warehouse. A broker's is `lake` in its data folder.",
        ),
    ):
        command = option(command)
    return command


@lake.command(epilog=EXAMPLES)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC…")
@click.option(
    "--values",
    type=click.Choice(("raw", "json", "registry")),
    default="raw",
    show_default=True,
    help="Keep values as bytes, decode JSON by --columns, or decode by the ids of a schema registry.",
)
@click.option("--columns", default="", metavar="DDL", help='Columns of JSON values: "id bigint, tags array<string>".')
@click.option("--registry", default="", metavar="URL", help="The schema registry of --values registry.")
@click.option("--subject", default="", help="The subject in the registry [default: TOPIC-value].")
@click.option(
    "--partition-by",
    default="",
    metavar="FIELDS",
    help="Partition new tables: day(_timestamp), bucket(16, id), country.",
)
@click.option(
    "--commit-interval",
    "interval_s",
    type=Duration(),
    default="10s",
    show_default=True,
    help="Commit new records at this interval.",
)
@click.option("--keep-snapshots", type=click.IntRange(min=2), default=100, show_default=True, help="Expire older ones.")
@click.option("--once", is_flag=True, help="Append the current records, and exit.")
@click.option(
    "--allow-gaps", is_flag=True, help="Continue if records were deleted from the topic before they were read."
)
@_with_place
@with_broker_options
def run(topics: tuple[str, ...], *, reach: Reach, **options: Any) -> None:
    """Append the records of TOPICs to their tables, until stopped.

    A table is created if it is missing, and begins with the oldest record of its topic. A second writer of the same
    table fences the first, which stops with an error.
    """
    lake_settings = _lake(options)
    topic_settings = [_topic(name, options) for name in dict.fromkeys(topics)]
    from ottla.client.blocking.background import Background
    from ottla.lake.running import LakeRun, RunSettings

    link = Background("lake", reach.servers, {"client_id": "ottla-lake", "security": reach.security()})
    try:
        settings = RunSettings(lake=lake_settings, interval_s=options["interval_s"], is_once=options["once"])
        running = LakeRun(link, settings, _tell)
        _run_until_stopped(running, topic_settings)
        if running.failures:
            raise click.exceptions.Exit(1)
    finally:
        link.close()


def _run_until_stopped(running: LakeRun, topics: list[TopicSettings]) -> None:
    """The first signal ends it after the current commit; the second at once, which is safe."""
    stopping = StopSignal()
    stopping.on_first_signal()

    def stop_when_told() -> None:
        stopping.wait()
        running.stop()

    threading.Thread(target=stop_when_told, daemon=True).start()
    running.run(topics)


def _tell(topic: str, done: Done, took_s: float) -> None:
    if not (done.rows or done.dead_letters):
        return
    dead = f", {counted(done.dead_letters, 'dead letter')}" if done.dead_letters else ""
    click.echo(f"{time.strftime('%H:%M:%S')} {topic}: {counted(done.rows, 'row')}{dead} committed in {took_s:.1f} s")


def _lake(options: dict[str, Any]) -> LakeSettings:
    from ottla.lake.catalogs import LakeSettings

    return LakeSettings(
        folder=options["folder"],
        warehouse=options["warehouse"],
        catalog=_catalog(options["catalog"]),
        namespace=options["namespace"],
    )


def _catalog(given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals or not key:
            raise ConfigError(f"--catalog must be KEY=VALUE, such as type=rest, got {each!r}")
        found[key] = value
    return found


def _topic(name: str, options: dict[str, Any]) -> TopicSettings:
    try:
        from ottla.lake.partitioning import parse_partitioning
        from ottla.lake.values import ValueSettings
        from ottla.lake.writer import TopicSettings
    except ImportError:
        raise ConfigError("tables need the packages pyiceberg and pyarrow; run: pip install 'ottla[lake]'") from None
    values = ValueSettings(
        format=options["values"],
        columns=options["columns"],
        registry=options["registry"],
        subject=options["subject"],
    )
    values.check()
    return TopicSettings(
        topic=name,
        namespace=options["namespace"],
        values=values,
        partition_by=parse_partitioning(options["partition_by"]),
        allows_gaps=options["allow_gaps"],
        keep_snapshots=options["keep_snapshots"],
    )


@lake.command(epilog=STATUS_EXAMPLES)
@_with_place
@with_output_option
@with_broker_options
def status(*, reach: Reach, output: str, **options: Any) -> None:
    """List tables: rows, snapshots, the last commit, and how many records of the topic are not in it yet."""
    from ottla.lake.status import statuses

    rows = statuses(reach.servers, reach.security(), _lake(options))
    show_rows(rows, ("table", "topic", "rows", "files", "snapshots", "committed", "lag"), output)
