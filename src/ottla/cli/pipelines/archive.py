"""`ottla pipeline archive`: archive a topic as Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ottla.cli.connecting import with_broker_options
from ottla.cli.durations import Duration
from ottla.cli.offsets.bounds import partitions_of
from ottla.cli.server.stopping import StopSignal
from ottla.cli.tables import counted, printable
from ottla.core.errors import ConfigError
from ottla.event_loop import run

if TYPE_CHECKING:
    from ottla.cli.connecting import Reach
    from ottla.spark.archive.archiver import Archiver, Done, Rules
    from ottla.spark.archive.reporting import ArchiveReport

EXAMPLES = """\b
Examples:
  ottla pipeline archive orders --to archive                          (all there is now)
  ottla pipeline archive orders --to archive --every 60s              (and what comes, until Ctrl-C)
  ottla pipeline archive orders --to s3://bucket/archive --every 5m --trim-topic 7d
  ottla pipeline archive orders --to archive --merge                  (into as few files as possible)
"""


@click.command(epilog=EXAMPLES)
@click.argument("topic")
@click.option("--to", "location", metavar="DIR|URL", required=True, help="Folder, or URL such as s3://bucket/path.")
@click.option(
    "--every",
    "every_s",
    type=Duration(),
    help="Keep running and archive new records at this interval, such as 60s or 5m.",
)
@click.option(
    "--trim-topic",
    "trim_s",
    metavar="AGE",
    type=Duration(),
    help="Delete archived records older than this from the topic, such as 7d; 0s for all.",
)
@click.option("--merge", is_flag=True, help="Compact all small files now.")
@click.option(
    "--allow-gaps", is_flag=True, help="Continue if records were deleted from the topic before they were archived."
)
@with_broker_options
def archive(topic: str, *, reach: Reach, **options: Any) -> None:
    """Archive TOPIC as Parquet files.

    Each record is archived once, even after kills: a restart continues where the files end. Spark reads the files and
    the topic as one with option("archive", DIR).
    """
    try:
        from ottla.spark.archive.archiver import Rules
    except ImportError:
        raise ConfigError("an archive needs pyarrow; run: pip install 'ottla[arrow]'") from None
    trim_s = options["trim_s"]
    rules = Rules(
        allows_gaps=options["allow_gaps"],
        merges_all=options["merge"],
        trims_older_than_ms=None if trim_s is None else int(trim_s * 1000),
    )
    _archive(reach, topic, options["location"], rules, options["every_s"])


def _archive(reach: Reach, topic: str, location: str, rules: Rules, every_s: float | None) -> None:
    from ottla.client.blocking.background import Background
    from ottla.spark.archive.archiver import Archiver
    from ottla.spark.archive.places import place_of
    from ottla.spark.archive.reporting import ArchiveReport

    run(_look_for(reach, topic))
    place = place_of(location, topic)
    link = Background("archiver", reach.servers, {"client_id": "ottla-archive", "security": reach.security()})
    try:
        with (
            place.held() as hold,
            ArchiveReport(link, topic, location, is_following=every_s is not None) as report,
        ):
            archiver = Archiver(link, topic, place, hold, rules)
            if every_s is None:
                _round(topic, archiver, report, is_first=True)
            else:
                _follow(topic, archiver, report, every_s)
    finally:
        link.close()


async def _look_for(reach: Reach, topic: str) -> None:
    """Check the arguments before anything is written."""
    async with reach.client() as client:
        await partitions_of(client.admin, [topic])


def _follow(topic: str, archiver: Archiver, report: ArchiveReport, every_s: float) -> None:
    """Run until stopped; a second signal interrupts it, which is safe. Survives broker restarts."""
    from ottla.client.errors import BrokerUnavailable

    stopping = StopSignal()
    stopping.on_first_signal()
    is_first = True
    while is_first or not stopping.wait(every_s):
        try:
            _round(topic, archiver, report, is_first=is_first)
        except BrokerUnavailable as away:
            click.echo(f"ottla: {printable(str(away))}; trying again", err=True)
        is_first = False


def _round(topic: str, archiver: Archiver, report: ArchiveReport, *, is_first: bool) -> None:
    done = archiver.round()
    report.add(done)
    _tell(topic, done, is_first=is_first)


def _tell(topic: str, done: Done, *, is_first: bool) -> None:
    if not (is_first or done.records or done.merged or done.trimmed_to):
        return
    ends = ", ".join(f"{at.partition}: {end}" for at, end in sorted(done.ends.items()))
    said = f"{topic}: {counted(done.records, 'record')} archived in {counted(done.stretches, 'piece')}"
    if done.merged:
        said += f", {done.merged} small ones merged"
    if done.trimmed_to:
        said += f", the topic trimmed to {', '.join(f'{at.partition}: {to}' for at, to in done.trimmed_to.items())}"
    click.echo(f"{said}; the archive ends at {ends or 'nothing'}")
