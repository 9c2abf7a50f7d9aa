"""`ottla serve`: says what is missing until the broker exists."""

from __future__ import annotations

import click

from ottla.core.errors import OttlaError


@click.command()
def serve() -> None:
    """Run the broker."""
    raise OttlaError(
        "the network broker is not part of this release yet; what works today: "
        "`ottla log --help`, `ottla config show` and the Python API (ottla.storage, ottla.records)"
    )
