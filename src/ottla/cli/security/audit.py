"""`ottla audit`: checks audit logs."""

from __future__ import annotations

from contextlib import ExitStack
from typing import IO, TYPE_CHECKING

import click

from ottla.broker.security.audit_chain import ChainBroken, Verified, link_of, verify
from ottla.cli.summaries import CommandGroup
from ottla.core.errors import OttlaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@click.group(cls=CommandGroup)
def audit() -> None:
    """Verify audit logs."""


@audit.command(
    "verify",
    epilog="""\b
Examples:
  ottla audit verify data/audit*.jsonl
  ottla audit verify data/audit*.jsonl --head 3f1c…
  ottla consume __ottla_audit --from earliest --exit | ottla audit verify -
""",
)
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@click.option(
    "--head", "heads", multiple=True, metavar="HASH", help="Require the line with this hash; repeat for more."
)
def verify_files(files: tuple[str, ...], heads: tuple[str, ...]) -> None:
    """Verify the hash chain of audit logs.

    Give rotated files and the current one in any order. Prints each chain with the hash of its last line; keep that
    hash elsewhere and pass it as --head later, which also detects lines removed at the end and rewritten files.
    Exits with 1 and names the first line that does not fit.
    """
    try:
        with ExitStack() as stack:
            opened = [stack.enter_context(click.open_file(file, "rb")) for file in files]
            verified = verify(_in_order(opened), heads)
    except ChainBroken as broken:
        raise OttlaError(str(broken)) from None
    except OSError as failed:
        raise OttlaError(f"{failed.filename}: {failed.strerror}") from None
    for head in heads:
        if head not in verified.digests:
            raise OttlaError(f"no line has the hash {head}: lines were removed or the files were rewritten")
    _show(verified)


def _show(verified: Verified) -> None:
    if verified.unchained:
        click.echo(f"{verified.unchained} lines of a release without hash chains: not verified")
    for chain, last in verified.last.items():
        first = verified.first[chain]
        earlier = "" if first == 1 else f" (lines before {first} are not in these files)"
        click.echo(f"chain {chain}: lines {first} to {last.seq} are intact{earlier}; head {last.digest}")
    if not verified.last:
        raise OttlaError("no audit lines found")


def _in_order(files: Iterable[IO[bytes]]) -> dict[str, Iterable[bytes]]:
    """By chain and sequence number of the first line; files without a chain first."""
    opened = []
    for file in files:
        first = file.readline()
        link = link_of(first)
        order = ("", 0) if link is None else (link.chain, link.seq)
        opened.append((order, file.name, _lines(first, file)))
    return {name: lines for _, name, lines in sorted(opened, key=lambda one: one[:2])}


def _lines(first: bytes, rest: IO[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest
