"""Blocking threads as greenlets: each runs until it blocks, then the event loop continues."""

from __future__ import annotations

import contextvars
from functools import partial
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent, greenlet

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

_kept: dict[Any, None] = {}
"""Workers, kept so that those of dead parties do not clean up."""


class Worker:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        what: Callable[[], Any],
        ended: Callable[[Any, BaseException | None], Any],
    ) -> None:
        self.loop = loop
        self.context = contextvars.copy_context()
        self._what = what
        self._ended = ended
        self._greenlet = greenlet(self._run)
        self._greenlet.worker = self  # type: ignore[attr-defined]
        self._greenlet.gr_context = contextvars.copy_context()
        _kept[self._greenlet] = None

    def run(self) -> None:
        self._greenlet.switch()

    def _run(self) -> None:
        try:
            result = self._what()
        except BaseException as error:  # noqa: BLE001 - as a future holds it
            self._ended(None, error)
        else:
            self._ended(result, None)
        del _kept[self._greenlet]

    def resume(self, value: Any) -> None:
        self._greenlet.switch(value)

    def wait(self) -> Any:
        """Block until this worker is resumed."""
        return self._greenlet.parent.switch()


def current_worker() -> Worker:
    worker: Worker | None = getattr(getcurrent(), "worker", None)
    if worker is None:
        raise AssertionError("the event loop itself would wait")
    return worker


class Event:
    """As `threading.Event`."""

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: list[tuple[Worker, list[bool]]] = []

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        waiting, self._waiting = self._waiting, []
        for worker, is_woken in waiting:
            self._wake(worker, is_woken, value=True)

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        if self._is_set:
            return True
        worker = current_worker()
        is_woken = [False]
        self._waiting.append((worker, is_woken))
        if timeout is not None:
            late = partial(self._wake, worker, is_woken, value=False)
            worker.loop.call_later(timeout, late, context=worker.context)
        return bool(worker.wait())

    @staticmethod
    def _wake(worker: Worker, is_woken: list[bool], *, value: bool) -> None:
        if not is_woken[0]:
            is_woken[0] = True
            worker.loop.call_soon(worker.resume, value, context=worker.context)


class Lock:
    """Like `threading.RLock`, which also replaces a correctly used `Lock`."""

    def __init__(self) -> None:
        self._holder: Any = None
        self._depth = 0
        self._freed = Event()

    def acquire(self) -> bool:
        me = getcurrent()
        while self._holder not in (None, me):
            self._freed.clear()
            self._freed.wait()
        self._holder = me
        self._depth += 1
        return True

    def release(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._holder = None
            self._freed.set()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Threading:
    """Replaces the module `threading` in code that waits for the catalog."""

    Event = Event
    Lock = Lock
    RLock = Lock

    @staticmethod
    def get_ident() -> int:
        return id(getcurrent())


def sleep(seconds: float) -> None:
    Event().wait(seconds)
