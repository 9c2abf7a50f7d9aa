"""Temporary data folders: in memory, if there is enough."""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a private folder is created in it
_NAME: Final = re.compile(r"ottla-([0-9]+)-[0-9a-f]{16}")
_ENOUGH_BYTES: Final = 256 << 20
"""The required free memory. Containers often have much less, which one large test would fill."""


@contextmanager
def ephemeral_folder() -> Iterator[Path]:
    """A new folder that is removed at the end. Removes folders of processes that were killed."""
    parent = _parent()
    _remove_abandoned(parent)
    folder = parent / f"ottla-{os.getpid()}-{os.urandom(8).hex()}"
    folder.mkdir(mode=0o700)
    # The kernel releases this lock when the process ends, however it ends.
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        os.close(descriptor)
        import shutil

        # A worker thread may still be deleting a topic in it.
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned(parent: Path) -> None:
    for entry in os.scandir(parent):
        name = _NAME.fullmatch(entry.name)
        # Process ids mean nothing in another container that shares the memory; a lock does.
        if name is not None and not _is_running(int(name[1])) and _is_unlocked(entry):
            import shutil

            shutil.rmtree(entry.path, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _is_unlocked(entry: os.DirEntry[str]) -> bool:
    try:
        if entry.stat(follow_symlinks=False).st_uid != os.getuid() or not entry.is_dir(follow_symlinks=False):
            return False
        descriptor = os.open(entry.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


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
