"""`ottla pipeline run` and `stop`."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Final

import click

from ottla.cli.connecting import with_broker_options
from ottla.cli.pipelines.files import load, need_spark, started_spark, with_file, with_master
from ottla.cli.server.logs import set_up_logging
from ottla.core.errors import ConfigError, OttlaError

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.cli.connecting import Reach
    from ottla.spark.pipelines.definition import Pipeline

_PATIENCE_S: Final = 90.0


@click.command(
    "run",
    epilog="""\b
Examples:
  ottla pipeline run orders.toml
  ottla pipeline run orders.toml --available-now
  ottla pipeline run orders.toml --every 10s --master spark://main:7077
""",
)
@with_file
@click.option("--available-now", is_flag=True, help="Process the available records, then exit.")
@click.option("--every", metavar="TIME", help="Trigger interval, such as 10s; overrides the file.")
@with_master
@with_broker_options
def run_verb(file: Path, *, reach: Reach, available_now: bool, every: str | None, master: str) -> None:
    """Run a pipeline until Ctrl-C, SIGTERM or `ottla pipeline stop`."""
    pipeline = load(file, reach)
    every_ms = _milliseconds(every)
    need_spark()
    from ottla.spark.pipelines.running import RunOptions, run_pipeline

    set_up_logging("warning", "text")
    spark = started_spark(pipeline, master)
    signals: list[int] = []
    # Set after Spark has started, which sets its own handlers.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda caught, _: signals.append(caught))
    try:
        done = run_pipeline(
            spark,
            pipeline,
            RunOptions(
                available_now=available_now,
                every_ms=every_ms,
                say=lambda line: click.echo(f"{time.strftime('%H:%M:%S')} {line}"),
                is_over=lambda: bool(signals),
            ),
        )
    finally:
        spark.stop()
    click.echo(f"{pipeline.name} {done.state}", err=True)


def _milliseconds(every: str | None) -> int | None:
    from ottla.spark.pipelines.fields import duration_ms

    if every is None:
        return None
    found = duration_ms(every)
    if found is None:
        raise ConfigError(f"--every: {every!r} is not a valid duration (use e.g. 10s or 1 minute)")
    return found


@click.command(
    epilog="""\b
Examples:
  ottla pipeline stop orders.toml
  ottla pipeline stop orders.toml --no-wait
""",
)
@with_file
@click.option("--no-wait", is_flag=True, help="Request the stop without waiting.")
@with_broker_options
def stop(file: Path, *, reach: Reach, no_wait: bool) -> None:
    """Stop a running pipeline after its current micro-batch; needs access to its state folder."""
    pipeline = load(file, reach)
    _stop(pipeline, timeout_s=0.0 if no_wait else _PATIENCE_S)
    click.echo(f"{pipeline.name} {'is asked to stop' if no_wait else 'stopped'}")


def _stop(pipeline: Pipeline, timeout_s: float) -> None:
    from ottla.spark.pipelines.state_folder import StateFolder

    state = StateFolder(pipeline.state)
    if not state.is_held():
        raise OttlaError(f"{pipeline.name} is not running here")
    state.ask_to_stop()
    deadline = time.monotonic() + timeout_s
    while timeout_s and state.is_held():
        if time.monotonic() > deadline:
            raise OttlaError(f"{pipeline.name} was asked to stop and is still running after {timeout_s:.0f} s")
        time.sleep(0.1)
