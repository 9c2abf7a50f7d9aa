"""`ottla pipeline`: topics into tables."""

from __future__ import annotations

import click

from ottla.cli.pipeline_archive import archive


@click.group()
def pipeline() -> None:
    """Topics into tables."""


pipeline.add_command(archive)
