"""Where data lives that nobody needs afterwards: in memory, where there is enough of it."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
_ENOUGH_BYTES: Final = 256 << 20
"""Containers often get much less, which one large test would fill."""


@contextmanager
def ephemeral_folder() -> Iterator[Path]:
    """A new folder that is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="ottla-", dir=_parent()))
    try:
        yield folder
    finally:
        # A worker thread may still be removing a deleted topic in it.
        shutil.rmtree(folder, ignore_errors=True)


def _parent() -> Path | None:
    """None for the system's own place for temporary files."""
    try:
        is_large_enough = shutil.disk_usage(_IN_MEMORY).free >= _ENOUGH_BYTES
    except OSError:
        return None
    return _IN_MEMORY if is_large_enough and os.access(_IN_MEMORY, os.W_OK | os.X_OK) else None
