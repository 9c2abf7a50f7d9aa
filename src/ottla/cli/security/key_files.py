"""The option `--keys` of commands that read or write encrypted data."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ottla.core.keys import read_key_file

if TYPE_CHECKING:
    from collections.abc import Callable

Decorated = TypeVar("Decorated", bound="Callable[..., Any]")


def with_key_file(command: Decorated) -> Decorated:
    """Give a command `--keys`; it gets the loaded keys, or None."""

    @functools.wraps(command)
    def with_keys(*args: object, keys_file: Path | None, **options: object) -> object:
        return command(*args, keys=None if keys_file is None else read_key_file(keys_file), **options)

    option = click.option(
        "--keys", "keys_file", metavar="FILE", type=click.Path(path_type=Path), help="Key file of encrypted data."
    )
    return option(with_keys)  # type: ignore[return-value]
