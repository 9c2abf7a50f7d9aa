"""Free space of the data folder: whether appends fail for lack of it."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_logger: Final = logging.getLogger(__name__)

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_CHECK_S: Final = 1.0
_MARGIN_BYTES: Final = 1 << 20
_MARGIN_DIVISOR: Final = 100
_PROBE: Final = ".space"
_PROBE_BYTES: Final = 64 << 10


class Space(NamedTuple):
    free_bytes: int
    total_bytes: int


def space_of(folder: Path) -> Space:
    found = os.statvfs(folder)
    return Space(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)


def can_write(folder: Path) -> bool:
    """Whether a file of a little more than a small batch can be written there."""
    path = folder / _PROBE
    try:
        path.write_bytes(bytes(_PROBE_BYTES))
    except OSError:
        return False
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    return True


class DiskSpace:
    """Enters the full state when an append fails, and leaves it once there is more free space than at that moment.

    More than at that moment, not more than zero: the rest may be reserved. The free space of a file system does not
    show a user's quota, so after EDQUOT a file is written to find out.
    """

    def __init__(
        self, folder: Path, space: Callable[[Path], Space] = space_of, can_write: Callable[[Path], bool] = can_write
    ) -> None:
        self._folder = folder
        self._space = space
        self._can_write = can_write
        self._is_quota = False
        self._timer: asyncio.TimerHandle | None = None
        self._enough_bytes = 0
        self.is_full = False

    def refused(self, error: OSError) -> None:
        """An append failed."""
        if error.errno not in _FULL or self.is_full:
            return
        self.is_full = True
        self._is_quota = error.errno == errno.EDQUOT
        free_bytes, total_bytes = self._space(self._folder)
        self._enough_bytes = free_bytes + min(_MARGIN_BYTES, total_bytes // _MARGIN_DIVISOR)
        _logger.warning(
            "disk full: appends to %s fail (%s); %d of %d bytes are free",
            *(self._folder, error.strerror or error, free_bytes, total_bytes),
        )
        self._timer = asyncio.get_running_loop().call_later(_CHECK_S, self.check)

    def check(self) -> None:
        """Look again, until there is space."""
        try:
            free_bytes = self._space(self._folder).free_bytes
        except OSError:
            free_bytes = 0
        has_space = self._can_write(self._folder) if self._is_quota else free_bytes >= self._enough_bytes
        if not has_space:
            self._timer = asyncio.get_running_loop().call_later(_CHECK_S, self.check)
            return
        self._timer = None
        self.is_full = False
        _logger.warning("disk no longer full: %d bytes are free in %s, appends continue", free_bytes, self._folder)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
