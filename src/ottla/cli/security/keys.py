"""`ottla keys`: keys for encryption at rest."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from ottla.cli.output import painted, show_json, terminal_width, with_output_option
from ottla.cli.settings import load_settings, with_settings_options
from ottla.cli.summaries import CommandGroup
from ottla.cli.tables import layout
from ottla.core.errors import ConfigError
from ottla.core.keys import (
    HIGHEST_KEY_ID,
    EncryptionConfig,
    KeyRing,
    first_ring,
    format_keys,
    load_keys,
    read_key_file,
    write_key_file,
)
from ottla.kms.wrapping import Unwrapper, wrapper_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ottla.storage.folder.key_use import KeyUse

KEY_FILE = click.option(
    "--keys",
    "key_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Key file [default: the configured keys].",
)


@click.group(cls=CommandGroup)
def keys() -> None:
    """Generate, rotate and inspect encryption keys."""


@keys.command(
    epilog="""\b
Examples:
  ottla keys generate /etc/ottla/keys
  ottla keys generate --id 2
""",
)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--id", "key_id", type=click.IntRange(1, HIGHEST_KEY_ID), default=1, show_default=True, help="Key id.")
@with_settings_options
def generate(file: Path | None, key_id: int, config_file: Path | None, assignments: Sequence[str]) -> None:
    """Generate a key into a new FILE with mode 0600, or print it.

    With encryption.key_wrapping the key is wrapped by that key management service.
    """
    [key] = first_ring().keys.values()
    ring = KeyRing({key_id: key})
    wrap = _wrap(load_settings(config_file, assignments).section(EncryptionConfig))
    if file is None:
        click.echo(format_keys(ring, wrap), nl=False)
        return
    write_key_file(file, ring, is_new=True, wrap=wrap)
    click.echo(f"key {key_id} is in {file}; keep a copy elsewhere: without it, what it encrypts is lost", err=True)


@keys.command(
    epilog="""\b
Examples:
  ottla keys rotate
  ottla keys rotate --rewrite
  ottla keys rotate --keys /etc/ottla/keys
""",
)
@with_settings_options
@KEY_FILE
@click.option("--rewrite", "rewrites", is_flag=True, help="Re-encrypt existing data, including plain data.")
def rotate(config_file: Path | None, assignments: Sequence[str], key_file: Path | None, *, rewrites: bool) -> None:
    """Add a new key to the key file; a running broker picks it up."""
    config = _encryption(config_file, assignments, key_file)
    if config.key_file is None:
        raise ConfigError("only a key file can be rotated; add the output of `ottla keys generate --id N` to your keys")
    path = config.key_file.expanduser()
    ring = read_key_file(path, Unwrapper(config)).with_new_key(rewrites=rewrites)
    write_key_file(path, ring, is_new=False, wrap=_wrap(config))
    click.echo(f"key {ring.newest} added to {path}; new data is encrypted with it", err=True)
    if rewrites:
        click.echo("the broker re-encrypts existing data; `ottla keys status` shows the progress", err=True)


@keys.command(
    epilog="""\b
Examples:
  ottla keys status
  ottla keys status --data-dir /var/lib/ottla --keys /etc/ottla/keys -o json
""",
)
@with_settings_options
@KEY_FILE
@click.option("--data-dir", type=click.Path(path_type=Path), help="Data folder [default: the configured one].")
@with_output_option
def status(
    config_file: Path | None, assignments: Sequence[str], key_file: Path | None, data_dir: Path | None, *, output: str
) -> None:
    """Show keys and how much data each encrypts, even while a broker runs."""
    from ottla.broker.config import BrokerConfig
    from ottla.storage.folder.key_use import find_key_use

    settings = load_settings(config_file, assignments)
    encryption = _encryption(config_file, assignments, key_file)
    ring = load_keys(encryption, Unwrapper(encryption))
    uses = find_key_use(data_dir or settings.section(BrokerConfig).data_dir)
    known = {} if ring is None else ring.keys
    rows = [
        _row(key_id, uses.by_key.get(key_id), is_known=key_id in known) for key_id in sorted({*known, *uses.by_key, 0})
    ]
    if uses.own.segments:
        rows.append({"key": "own", "is": "of topics", "segments": uses.own.segments, "bytes": uses.own.size})
    if output == "json":
        leftovers = [str(path) for path in uses.plain_leftovers]
        show_json({"keys": rows, "rewrite_below": ring.rewrite_below if ring else 0, "plain_leftovers": leftovers})
        return
    _show(rows, ring, uses.plain_leftovers)


def _row(key_id: int, use: KeyUse | None, *, is_known: bool) -> dict[str, object]:
    return {
        "key": key_id or "none",
        "is": "plain" if key_id == 0 else "known" if is_known else "missing",
        "segments": use.segments if use else 0,
        "bytes": use.size if use else 0,
    }


def _is_older(key: object, below: int) -> bool:
    return key == "none" or (isinstance(key, int) and key < below)


def _show(rows: list[dict[str, object]], ring: KeyRing | None, plain_leftovers: list[Path]) -> None:
    heading, *lines = layout(("key", "is", "segments", "bytes"), rows, terminal_width(sys.stdout))
    click.echo(painted(heading, sys.stdout, bold=True))
    for line in lines:
        click.echo(line)
    if ring is not None:
        click.echo(f"\nnew data is encrypted with key {ring.newest}")
        below = ring.rewrite_below
        left = sum(int(str(row["segments"])) for row in rows if _is_older(row["key"], below))
        if below:
            done = "all is encrypted" if not left else f"{left} segments remain to be re-encrypted"
            click.echo(f"{done} with key {below} or a newer one")
    for path in plain_leftovers:
        click.echo(f"unencrypted leftover file, not used by the broker: {path}")


def _encryption(config_file: Path | None, assignments: Sequence[str], key_file: Path | None) -> EncryptionConfig:
    config = load_settings(config_file, assignments).section(EncryptionConfig)
    if key_file is not None:
        return replace(config, key_file=key_file, key_variable=None, key_command=())
    return config


def _wrap(config: EncryptionConfig) -> Callable[[bytes], str]:
    return bytes.hex if config.key_wrapping == "none" else wrapper_for(config.key_wrapping, config).wrap
