"""A fault, and how often it was triggered."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from ottla.broker.faults.filters import Filter


class Fault:
    """Active until the end of its `with` block, or until `remove` is called."""

    def __init__(
        self, kind: str, where: Filter, times: int | None = None, *, detail: str = "", counts_itself: bool = False
    ) -> None:
        if times is not None and times < 1:
            raise ValueError(f"times must be at least 1, got {times}; omit it for no limit")
        self.id = 0
        """The fault's number in its broker."""
        self.kind = kind
        self.where = where
        self.times = times
        self.detail = detail
        self.counts_itself = counts_itself
        """Whether the fault depends on the response, not only on the request."""
        self.struck = 0
        """How often it was triggered."""
        self.removal: Callable[[], None] = _nothing
        """Called by `remove`."""
        self._changed = threading.Condition()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        what = f"{self.kind} {self.detail}".strip()
        return f"<{what} for {self.where}, struck {self.struck} of {self.times or 'all'}>"

    @property
    def is_spent(self) -> bool:
        return self.times is not None and self.struck >= self.times

    def strike(self, times: int = 1) -> None:
        with self._changed:
            self.struck += times
            self._changed.notify_all()

    def remove(self) -> None:
        """Deactivate the fault. Idempotent."""
        self.removal()

    def wait(self, times: int = 1, *, timeout_s: float = 10.0) -> None:
        """Wait until the fault was triggered this many times."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.struck >= times, timeout_s):
                raise TimeoutError(f"in {timeout_s:g} s, not {times} times: {self!r}")


def _nothing() -> None:
    """The removal of a fault that had its effect immediately, or was never active."""
