"""The option of commands that read or write what may be encrypted."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ottla.core.keys import read_key_file

if TYPE_CHECKING:
    from collections.abc import Callable

Decorated = TypeVar("Decorated", bound="Callable[..., Any]")


def with_key_file(command: Decorated, flag: str = "--key-file") -> Decorated:
    """Give a command `--key-file`; it gets the keys that are in it, or None."""

    @functools.wraps(command)
    def with_keys(*args: object, file_of_keys: Path | None, **options: object) -> object:
        return command(*args, keys=None if file_of_keys is None else read_key_file(file_of_keys), **options)

    kind = click.Path(path_type=Path)
    option = click.option(flag, "file_of_keys", metavar="FILE", type=kind, help="The keys of what is encrypted.")
    return option(with_keys)  # type: ignore[return-value]


def with_queue_key_file(command: Decorated) -> Decorated:
    """The same for a command whose `--key-file` is the key of a certificate."""
    return with_key_file(command, "--queue-key-file")
