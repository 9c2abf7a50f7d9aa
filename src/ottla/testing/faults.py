"""What is to go wrong, for which requests, and how often it did."""

from __future__ import annotations

import errno
import os
import threading
from functools import partial
from typing import TYPE_CHECKING

from ottla.core.errors import ErrorCode
from ottla.testing import effects
from ottla.testing.history import Filter
from ottla.testing.subjects import Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, Self, Unpack

    from ottla.broker.dispatch import Answer
    from ottla.broker.partition import Partition
    from ottla.testing.effects import Call
    from ottla.testing.history import SeenRequest, Where

    Effect = Callable[[Call], Coroutine[Any, Any, Answer]]


class Fault:
    """One thing that goes wrong. In a `with` block it does so until the block ends, else until `remove` is called."""

    def __init__(self, what: str, where: Filter, times: int | None, faults: Faults) -> None:
        if times is not None and times < 1:
            raise ValueError(f"times must be at least 1, got {times}; leave it out for every time")
        self.what = what
        self.where = where
        self.times = times
        self.struck = 0
        """How often it did."""
        self._faults = faults
        self._changed = threading.Condition()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<{self.what} for {self.where}, struck {self.struck} of {self.times or 'all'}>"

    @property
    def is_spent(self) -> bool:
        return self.times is not None and self.struck >= self.times

    def strike(self) -> None:
        with self._changed:
            self.struck += 1
            self._changed.notify_all()

    def remove(self) -> None:
        """Let things go well again. May be called again."""
        self._faults.remove(self)

    def wait(self, times: int = 1, *, timeout_s: float = 10.0) -> None:
        """Return once it has struck so often."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.struck >= times, timeout_s):
                raise TimeoutError(f"in {timeout_s:g} s, not {times} times: {self!r}")


class Faults:
    """Of those that are meant for a request, the one that was made first strikes; one request is struck once."""

    def __init__(self) -> None:
        self._of_requests: dict[Fault, Effect] = {}
        self._of_disk: dict[Fault, OSError] = {}

    def error(self, code: ErrorCode | str, *, times: int | None = None, **where: Unpack[Where]) -> Fault:
        """Answer this error code, without any effect: to the next `times` requests, or to every one.

        Where a topic or partition is named, the others of the same request are served.
        """
        known = code if isinstance(code, ErrorCode) else ErrorCode[code]
        wanted = Filter(**where)
        return self._arm(f"error {known.name}", wanted, times, lambda call: effects.refuse(call, known, wanted))

    def delay(self, seconds: float, *, times: int | None = None, **where: Unpack[Where]) -> Fault:
        """Wait this long before serving; other requests of the same connection wait behind it."""
        return self._arm(f"delay of {seconds:g} s", Filter(**where), times, partial(effects.delay, seconds=seconds))

    def drop(self, *, after_effect: bool = False, times: int | None = None, **where: Unpack[Where]) -> Fault:
        """Close the connection instead of answering: before the request has any effect, or after."""
        what = f"drop {'after' if after_effect else 'before'} the effect"
        return self._arm(what, Filter(**where), times, partial(effects.drop, after_effect=after_effect))

    def fail_fsync(self, *, topic: str | None = None, partition: int | None = None, times: int | None = None) -> Fault:
        """Let the disk fail when data is forced to it. The partition is offline from then on, as with a real disk."""
        fault = Fault("failed fsync", Filter(topic=topic, partition=partition), times, self)
        self._of_disk[fault] = OSError(errno.EIO, os.strerror(errno.EIO))
        return fault

    def clear(self) -> None:
        self._of_requests.clear()
        self._of_disk.clear()

    def remove(self, fault: Fault) -> None:
        self._of_requests.pop(fault, None)
        self._of_disk.pop(fault, None)

    def _arm(self, what: str, where: Filter, times: int | None, effect: Effect) -> Fault:
        fault = Fault(what, where, times, self)
        self._of_requests[fault] = effect
        return fault

    # What the broker asks

    def effect_on(self, seen: SeenRequest) -> Effect | None:
        for fault, effect in tuple(self._of_requests.items()):
            if not fault.is_spent and fault.where.matches(seen):
                fault.strike()
                return effect
        return None

    def disk_error(self, partition: Partition) -> OSError | None:
        subject = Subject(partition.at.topic, partition.at.partition)
        for fault, error in tuple(self._of_disk.items()):
            if not fault.is_spent and fault.where.covers(subject):
                fault.strike()
                return error
        return None
