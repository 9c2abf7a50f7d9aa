"""`ottla pipeline`: run topic-to-table pipelines defined in a TOML file."""

from __future__ import annotations

import click

from ottla.cli.pipeline_archive import archive
from ottla.cli.pipeline_jobs import backfill, compact, redrive, replay
from ottla.cli.pipeline_looks import check, init, status
from ottla.cli.pipeline_runs import run_verb, stop
from ottla.cli.pipeline_tests import test_verb
from ottla.cli.summaries import Verbs


@click.group(cls=Verbs)
def pipeline() -> None:
    """Run topic-to-table pipelines defined in a TOML file."""


for verb in (init, check, test_verb, run_verb, status, stop, backfill, replay, redrive, compact, archive):
    pipeline.add_command(verb)
