"""An event loop on virtual time: instead of waiting, the clock jumps to the next timer."""

from __future__ import annotations

import asyncio
import itertools
import socket
import zlib
from collections import Counter
from contextvars import copy_context
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from .blocking import Worker
from .parties import PARTY, party_of

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from contextvars import Context

    from .network import Network
    from .parties import Party

_TICK_S: Final = 2e-6
"""The virtual duration of a callback, so that time always advances."""
_MOST_CALLBACKS_PER_S: Final = 150_000
"""More callbacks within a virtual second mean a busy loop."""
_THREAD_DELAY_S: Final = (0.00002, 0.002)


_SAMPLE: Final = 2_000


def _place(task: asyncio.Task[Any]) -> str:
    frames = task.get_stack()
    return f"{frames[-1].f_code.co_qualname}:{frames[-1].f_lineno}" if frames else ""


class SimHandle:
    """As `asyncio.Handle` and `asyncio.TimerHandle`."""

    __slots__ = ("args", "at_s", "callback", "context", "is_cancelled")

    def __init__(self, callback: Any, args: tuple[Any, ...], context: Context, at_s: float) -> None:
        self.callback = callback
        self.args = args
        self.context = context
        self.at_s = at_s
        self.is_cancelled = False

    def cancel(self) -> None:
        """Dropped when its time comes."""
        if not self.is_cancelled:
            self.is_cancelled = True
            self.callback, self.args = None, ()

    def cancelled(self) -> bool:
        return self.is_cancelled

    def when(self) -> float:
        return self.at_s


def _name(handle: SimHandle) -> str:
    callback = handle.callback
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        return f"{party_of(handle.context)} {task.get_coro().__qualname__} {_place(task)}"  # type: ignore[union-attr]
    return f"{party_of(handle.context)} {getattr(callback, '__qualname__', callback)}"


_numbers = itertools.count()


class SimFuture(asyncio.Future[Any]):
    """Hashed by a number, not by its address: sets have the same order in every run."""

    _number: int

    def __hash__(self) -> int:
        try:
            return self._number
        except AttributeError:
            self._number = next(_numbers)
            return self._number


class SimTask(asyncio.Task[Any]):
    """Numbered when it registers itself."""

    _number: int

    def __hash__(self) -> int:
        return self._number


def _make_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> SimTask:
    return SimTask(coroutine, loop=loop, **options)


_tasks: list[tuple[Party | None, ref[SimTask]]] = []
"""By the party that created it: a WeakSet, which asyncio uses, takes much longer."""


def _register(task: SimTask) -> None:
    task._number = next(_numbers)
    _tasks.append((PARTY.get(), ref(task)))


class Stuck(Exception):  # noqa: N818
    """The history is deadlocked or in a busy loop."""


class NeverEnds(KeyboardInterrupt):
    """A callback does not return. A BaseException, because tasks swallow other exceptions."""


class SimLoop(asyncio.BaseEventLoop):
    def __init__(self, chance: random.Random, network: Network) -> None:
        super().__init__()
        self.now_s = 1000.0
        self.is_traced = True
        self.trace = 0
        """A checksum of what happened and when: the same for two runs of one seed."""
        self.dump: Any = None
        """An optional file for the full trace."""
        self.ends_by_s = float("inf")
        self.graveyard: list[SimHandle] = []
        """Callbacks of dead parties, kept so that their coroutines do not clean up."""
        self.slow_threads = 0.0
        self._chance = chance
        self._network = network
        self._timers: list[tuple[float, int, SimHandle]] = []
        self._timer_numbers = itertools.count()
        self._next_second = 0
        self._callbacks = 0
        self._in_second = 0
        self._sample: Counter[str] = Counter()
        self.set_task_factory(_make_task)
        asyncio.tasks._all_tasks.add = _register  # type: ignore[attr-defined]
        self.get_debug = bool  # type: ignore[method-assign, assignment]
        """False; every new future asks."""

    def create_future(self) -> SimFuture:
        return SimFuture(loop=self)

    def time(self) -> float:
        return self.now_s

    def note(self, *what: object) -> None:
        if not self.is_traced:
            return
        line = f"{self.now_s:.6f} {what}"
        self.trace = zlib.crc32(line.encode(), self.trace)
        if self.dump is not None:
            print(line, file=self.dump)

    def _run_once(self) -> None:
        ready, timers = self._ready, self._timers  # type: ignore[attr-defined]
        while not self._stopping:  # type: ignore[attr-defined]
            if not ready or (timers and timers[0][0] <= self.now_s):
                self._take_due(ready)
            self._run_ready(ready)
            if self._in_second > _MOST_CALLBACKS_PER_S or self.now_s >= self._next_second:
                self._look_for_circles()

    def _run_ready(self, ready: Any) -> None:
        """One frame for all that is ready: this is the simulator's innermost loop."""
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle.is_cancelled:
                continue
            context = handle.context
            party = context.get(PARTY)
            if party is not None and (party.is_dead or party.is_paused):
                (self.graveyard if party.is_dead else party.held).append(handle)
                continue
            self.now_s += _TICK_S
            self._in_second += 1
            if self._in_second > _MOST_CALLBACKS_PER_S - _SAMPLE or self.dump is not None:
                self._look_at(handle)
            try:
                context.run(handle.callback, *handle.args)
            except (SystemExit, KeyboardInterrupt, Stuck):
                raise
            except BaseException as failed:  # noqa: BLE001 - as `asyncio.Handle` does it
                self.call_exception_handler({"message": f"failed: {_name(handle)}", "exception": failed})

    def _look_at(self, handle: SimHandle) -> None:
        name = _name(handle)
        if self._in_second > _MOST_CALLBACKS_PER_S - _SAMPLE:
            self._sample[name] += 1
        if self.dump is not None:
            print(f"{self.now_s:.6f} {name}", file=self.dump)

    def _take_due(self, ready: Any) -> None:
        """Due timers; if nothing is ready, the clock jumps to the next one."""
        timers = self._timers
        if not ready:
            while timers and timers[0][2].is_cancelled:
                heappop(timers)
            if not timers:
                raise Stuck("no timers are left")
            self.now_s = max(self.now_s, timers[0][0])
            if self.now_s > self.ends_by_s:
                raise Stuck(f"the history does not end: {self._who_waits()}")
        while timers and timers[0][0] <= self.now_s:
            ready.append(heappop(timers)[2])

    def _who_waits(self) -> list[str]:
        """Waiting tasks that do not belong to nodes."""
        found = [task() for party, task in _tasks if not str(party).startswith("node")]
        return [
            f"{task.get_name()} {task.get_coro().__qualname__} at {_place(task)}"  # type: ignore[union-attr]
            for task in found
            if task is not None and not task.done()
        ][:8]

    def _look_for_circles(self) -> None:
        if self._in_second > _MOST_CALLBACKS_PER_S:
            raise Stuck(f"more than {_MOST_CALLBACKS_PER_S} callbacks within a second: {self._sample.most_common(6)}")
        self._next_second = int(self.now_s) + 1
        self._callbacks += self._in_second
        self._in_second = 0
        self._sample.clear()

    @property
    def callbacks(self) -> int:
        return self._callbacks + self._in_second

    def call_at(self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
        timer = SimHandle(callback, args, copy_context() if context is None else context, when)
        heappush(self._timers, (when, next(self._timer_numbers), timer))
        return timer

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
        when = self.now_s + delay
        timer = SimHandle(callback, args, copy_context() if context is None else context, when)
        heappush(self._timers, (when, next(self._timer_numbers), timer))
        return timer

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
        handle = SimHandle(callback, args, copy_context() if context is None else context, 0.0)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    call_soon_threadsafe = call_soon

    def resume(self, held: list[SimHandle]) -> None:
        self._ready.extend(held)  # type: ignore[attr-defined]

    # Threads

    def run_in_executor(self, _executor: Any, what: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Run in a separate worker after a delay; the result arrives after another delay."""
        done: asyncio.Future[Any] = self.create_future()

        def finish(result: Any, error: BaseException | None) -> None:
            if not done.cancelled():
                if error is None:
                    done.set_result(result)
                else:
                    done.set_exception(error)

        worker = Worker(
            self, lambda: what(*args), lambda *ended: self.call_later(self.thread_delay_s(), finish, *ended)
        )
        self.call_later(self.thread_delay_s(), worker.run)
        return done

    def thread_delay_s(self) -> float:
        return self._chance.uniform(*_THREAD_DELAY_S) + (
            self.slow_threads and self._chance.uniform(0, self.slow_threads)
        )

    def set_default_executor(self, executor: Any) -> None:
        pass

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        pass

    # Sockets

    async def create_server(
        self, factory: Callable[[], Any], host: Any = None, port: Any = None, *, sock: Any = None, **_: Any
    ) -> Any:
        if sock is not None:
            host, port = sock.getsockname()
        return self._network.listen(factory, host, port)

    async def create_connection(self, factory: Callable[[], Any], host: Any = None, port: Any = None, **_: Any) -> Any:
        return await self._network.connect(factory, host, port)

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        if str(host).startswith("10."):
            return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, port))]
        raise OSError(f"nobody is called {host}")

    def _process_events(self, _events: Any) -> None:
        raise AssertionError("there are no sockets")

    def _write_to_self(self) -> None:
        """No-op: the loop never sleeps."""
