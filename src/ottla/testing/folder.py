"""Temporary data folders: in memory, if there is enough."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a private folder is created in it
_ENOUGH_BYTES: Final = 256 << 20
"""The required free memory. Containers often have much less, which one large test would fill."""


@contextmanager
def ephemeral_folder() -> Iterator[Path]:
    """A new folder that is removed at the end."""
    folder = _parent() / f"ottla-{os.getpid()}-{os.urandom(8).hex()}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        import shutil

        # A worker thread may still be deleting a topic in it.
        shutil.rmtree(folder, ignore_errors=True)


def _parent() -> Path:
    """A folder in memory, or the system's temporary folder."""
    try:
        space = os.statvfs(_IN_MEMORY)
    except OSError:
        has_room = False
    else:
        has_room = space.f_bavail * space.f_frsize >= _ENOUGH_BYTES
    if has_room and os.access(_IN_MEMORY, os.W_OK | os.X_OK):
        return _IN_MEMORY
    import tempfile

    return Path(tempfile.gettempdir())
