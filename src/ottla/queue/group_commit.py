"""Group commit: one thread syncs for all waiting threads."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class GroupCommit:
    """Mutually exclusive syncs, requested by many threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_syncing = False

    def sync(self, is_done: Callable[[], bool], sync: Callable[[], None]) -> None:
        """Return when `is_done`, possibly by another thread's sync; otherwise `sync`.

        Not a lock: threads whose data is synced would queue behind the next sync.
        """
        with self._changed:
            while self._is_syncing and not is_done():
                self._changed.wait()
            if is_done():
                return
            self._is_syncing = True
        try:
            sync()
        finally:
            self._end()

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """While no sync runs."""
        with self._changed:
            while self._is_syncing:
                self._changed.wait()
            self._is_syncing = True
        try:
            yield
        finally:
            self._end()

    def _end(self) -> None:
        with self._changed:
            self._is_syncing = False
            self._changed.notify_all()
