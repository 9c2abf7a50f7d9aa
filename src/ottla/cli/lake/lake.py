"""`ottla lake`: topics as Iceberg tables."""

from __future__ import annotations

import importlib.util
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

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
    from ottla.client.blocking.background import Background
    from ottla.lake.catalogs import LakeSettings
    from ottla.lake.running import LakeRun
    from ottla.lake.writer import Done, TopicSettings

EXAMPLES = """\b
Examples:
  ottla lake run orders                                               (values as they are, until Ctrl-C)
  ottla lake run orders --values json --columns 'id bigint, amount double, at timestamp'
  ottla lake run orders --values registry --registry http://localhost:8082/schema-registry
  ottla lake run customers --mode upsert --partition-by 'bucket(16, _key)'
  ottla lake run orders payments --partition-by 'day(_timestamp)' --commit-interval 30s
  ottla lake run orders --warehouse s3://bucket/lake --catalog type=rest --catalog uri=https://catalog
  ottla lake run                                                      (topics with the config ottla.table.enable)
  ottla lake status
"""
_OF_TOPICS: Final = {
    "values": "ottla.table.values",
    "columns": "ottla.table.columns",
    "mode": "ottla.table.mode",
    "subject": "ottla.table.subject",
    "partition_by": "ottla.table.partition.by",
    "interval_s": "ottla.table.commit.interval.ms",
    "allow_gaps": "ottla.table.allow.gaps",
}
MAINTAIN_EXAMPLES = """\b
Examples:
  ottla lake maintain
  ottla lake maintain orders --dir data/lake --keep-snapshots 10 --orphans-older-than 1d
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
            help="Folder of the catalog (catalog.db) and the warehouse; a broker's is `lake` in its data folder. "
            "[default: lake]",
        ),
    ):
        command = option(command)
    return command


@lake.command(epilog=EXAMPLES)
@click.argument("topics", nargs=-1, metavar="[TOPIC…]")
@click.option(
    "--values",
    type=click.Choice(("raw", "json", "registry")),
    default="raw",
    show_default=True,
    help="Keep values as bytes, decode JSON by --columns, or decode by the ids of a schema registry.",
)
@click.option(
    "--mode",
    type=click.Choice(("append", "upsert")),
    default="append",
    show_default=True,
    help="A row for each record, or for each key: a tombstone deletes it.",
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

    Without TOPICs it follows the topics whose config ottla.table.enable is set, and takes their settings from
    ottla.table.values and the related configs. A broker does so itself, in a process beside it, unless its setting
    lake.writer is false.

    A table is created if it is missing, and begins with the oldest record of its topic. A second writer of the same
    table fences the first, which stops with an error.
    """
    lake_settings = _lake(options)
    _check_packages()
    topic_settings = [_topic(name, options) for name in dict.fromkeys(topics)]
    if not topics:
        _refuse_topic_options()
    from ottla.client.blocking.background import Background
    from ottla.lake.running import LakeRun, RunSettings

    link = Background("lake", reach.servers, {"client_id": "ottla-lake", "security": reach.security()})
    try:
        running = LakeRun(link, RunSettings(lake=lake_settings, is_once=options["once"]), _tell)
        _stop_at_signal(running)
        if topics:
            running.run(topic_settings)
        else:
            _follow(link, running, options)
        if running.failures:
            raise click.exceptions.Exit(1)
    finally:
        link.close()


def _follow(link: Background, running: LakeRun, options: dict[str, Any]) -> None:
    from ottla.lake.declared import DeclaredTables

    tables = DeclaredTables(namespace=options["namespace"], registry=options["registry"])
    if not tables.find(link):
        click.echo(
            "no topic has ottla.table.enable; run: ottla topic alter TOPIC --set ottla.table.enable=true", err=True
        )
    running.follow(lambda: tables.find(link), lambda: None)


def _refuse_topic_options() -> None:
    """Of topics that declare their tables, their configs say this."""
    context = click.get_current_context()
    for name, config in _OF_TOPICS.items():
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            option = next(each.opts[0] for each in context.command.params if each.name == name)
            raise click.UsageError(f"{option} needs TOPICs; without them it is the topic config {config}")


def _stop_at_signal(running: LakeRun) -> None:
    """The first signal ends it after the current commit; the second at once, which is safe."""
    stopping = StopSignal()
    stopping.on_first_signal()

    def stop_when_told() -> None:
        stopping.wait()
        running.stop()

    threading.Thread(target=stop_when_told, daemon=True).start()


def _tell(topic: str, done: Done, took_s: float) -> None:
    if not (done.rows or done.dead_letters):
        return
    dead = f", {counted(done.dead_letters, 'dead letter')}" if done.dead_letters else ""
    click.echo(f"{time.strftime('%H:%M:%S')} {topic}: {counted(done.rows, 'row')}{dead} committed in {took_s:.1f} s")


def _lake(options: dict[str, Any]) -> LakeSettings:
    from ottla.cli.lake_config import catalog_properties
    from ottla.lake.catalogs import LakeSettings

    return LakeSettings(
        folder=options["folder"] or Path("lake"),
        warehouse=options["warehouse"],
        catalog=catalog_properties(options["catalog"], "--catalog"),
        namespace=options["namespace"],
    )


def _existing() -> Path:
    """The folder of `ottla lake run`, or of a broker in this folder."""
    return next((each for each in (Path("lake"), Path("data/lake")) if (each / "catalog.db").exists()), Path("lake"))


def _check_packages() -> None:
    if any(importlib.util.find_spec(each) is None for each in ("pyiceberg", "pyarrow")):
        raise ConfigError("tables need the packages pyiceberg and pyarrow; run: pip install 'ottla[lake]'")


def _topic(name: str, options: dict[str, Any]) -> TopicSettings:
    from ottla.columns.partitioning import parse_partitioning
    from ottla.lake.values import ValueSettings
    from ottla.lake.writer import TopicSettings

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
        mode=options["mode"],
        partition_by=parse_partitioning(options["partition_by"]),
        allows_gaps=options["allow_gaps"],
        keep_snapshots=options["keep_snapshots"],
        interval_s=options["interval_s"],
    )


@lake.command(epilog=MAINTAIN_EXAMPLES)
@click.argument("topics", nargs=-1, metavar="[TOPIC…]")
@click.option("--keep-snapshots", type=click.IntRange(min=2), default=100, show_default=True, help="Expire older ones.")
@click.option(
    "--orphans-older-than",
    "orphans_older_than_s",
    type=Duration(),
    default="3d",
    show_default=True,
    help="Remove files of this age that no snapshot has.",
)
@_with_place
def maintain(topics: tuple[str, ...], **options: Any) -> None:
    """Merge small data files, expire snapshots and remove orphan files of the tables of TOPICs, or of all.

    It needs no broker and may run beside the writer, which merges files and expires snapshots itself.
    """
    _check_packages()
    from ottla.lake.maintaining import Upkeep, maintain

    options["folder"] = options["folder"] or _existing()
    upkeep = Upkeep(options["keep_snapshots"], options["orphans_older_than_s"])
    for each in maintain(_lake(options), topics, upkeep):
        click.echo(
            f"{each.table}: merged {counted(each.merged, 'file')} into {each.into}, expired "
            f"{counted(each.expired, 'snapshot')}, removed {counted(each.orphans, 'orphan file')}"
        )


@lake.command(epilog=STATUS_EXAMPLES)
@_with_place
@with_output_option
@with_broker_options
def status(*, reach: Reach, output: str, **options: Any) -> None:
    """List tables: rows, snapshots, the last commit, how many records of the topic are not in it yet, and the state.

    The state is that of the broker's table writer, or why it does not write the table.
    """
    from ottla.lake.status import statuses

    options["folder"] = options["folder"] or _existing()
    rows = statuses(reach.servers, reach.security(), _lake(options))
    show_rows(rows, ("table", "topic", "rows", "files", "snapshots", "committed", "lag", "state"), output)
