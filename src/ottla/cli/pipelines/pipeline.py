"""`ottla pipeline`: run topic-to-table pipelines defined in a TOML file."""

from __future__ import annotations

import click

from ottla.cli.pipelines.archive import archive
from ottla.cli.pipelines.cases import test_verb
from ottla.cli.pipelines.jobs import backfill, compact, redrive, replay
from ottla.cli.pipelines.overview import check, init, status
from ottla.cli.pipelines.runs import run_verb, stop
from ottla.cli.summaries import CommandGroup


@click.group(cls=CommandGroup)
def pipeline() -> None:
    """Run topic-to-table pipelines defined in a TOML file."""


for verb in (init, check, test_verb, run_verb, status, stop, backfill, replay, redrive, compact, archive):
    pipeline.add_command(verb)
