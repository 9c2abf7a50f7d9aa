"""Temporary file systems, where the tests are allowed to mount them."""

from __future__ import annotations

import ctypes
import os
import subprocess
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CLONE_NEWNS = 0x00020000


class CannotMount(Exception):
    """The message names the missing requirement."""


@cache
def _keep_mounts_to_ourselves() -> None:
    """Use a private mount namespace: mounts disappear with this process and are invisible to others."""
    if os.geteuid() != 0:
        raise CannotMount("mounting a file system needs root")
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS):
        raise CannotMount(f"a separate mount namespace: {os.strerror(ctypes.get_errno())}")
    mount("--make-rprivate", "/")


def mount(*options: str) -> None:
    result = subprocess.run(["mount", *options], capture_output=True, text=True, check=False)
    if result.returncode:
        raise CannotMount(f"mount {' '.join(options)}: {result.stderr.strip()}")


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """Mount on this folder; `options` are those of mount(8), including the source."""
    _keep_mounts_to_ourselves()
    folder.mkdir()
    mount(*options, str(folder))
    try:
        yield folder
    finally:
        # Lazily: a test that failed may have left files open.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def remount(folder: Path, *options: str) -> None:
    mount("-o", ",".join(("remount", *options)), str(folder))


@contextmanager
def tmpfs(folder: Path, size: str) -> Iterator[Path]:
    """A file system in memory of this size."""
    with mounted(folder, "-t", "tmpfs", "-o", f"size={size}", "tmpfs") as path:
        yield path
