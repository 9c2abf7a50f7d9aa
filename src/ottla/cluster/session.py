"""Tracks the ZooKeeper session by this node's clock, and fences the node when it may have expired."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from ottla.cluster.lease import Lease, ask_every_s
from ottla.cluster.operations import Disconnected
from ottla.cluster.store import Session, Store
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_logger: Final = logging.getLogger(__name__)

_NO_SESSION: Final = 0


def now_s() -> float:
    """A clock that advances while the machine sleeps, if available: sessions expire meanwhile."""
    return time.clock_gettime(_CLOCK)


_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SessionKeeper:
    def __init__(
        self, store: Store, register_anew: Callable[[], Awaitable[None]], may_lead_again: Callable[[], None]
    ) -> None:
        self._store = store
        self._register_again = register_anew
        self._may_lead_again = may_lead_again
        self._lease = Lease()
        self._session_id = _NO_SESSION
        self._is_stopped = True
        self._on_lost: list[Callable[[], None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.TimerHandle | None = None
        store.listen(self._changed)

    @property
    def is_fenced(self) -> bool:
        return self._lease.is_over(now_s())

    def on_lost(self, callback: Callable[[], None]) -> None:
        self._on_lost.append(callback)

    def start(self) -> None:
        """Must be called when the node is registered."""
        self._loop = asyncio.get_running_loop()
        self._is_stopped = False
        self._spawn(self._keep_asking())

    async def stop(self) -> None:
        self._is_stopped = True
        self._lease.end()
        if self._ending is not None:
            self._ending.cancel()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def registered(self) -> None:
        """Record that this node is registered in this session: no other leader is elected in its place before the
        session ends.
        """
        self._session_id = self._store.session_id
        # ZooKeeper has just responded, but the time of the request is unknown: this is the conservative choice.
        self._extend(now_s() - ask_every_s(self._store.timeout_s))

    def _spawn(self, what: Awaitable[None]) -> None:
        async def run() -> None:
            await what

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # The lease

    async def _keep_asking(self) -> None:
        while True:
            self._ask()
            await asyncio.sleep(ask_every_s(self._store.timeout_s))

    def _ask(self) -> None:
        sent_s, session_id = now_s(), self._session_id
        self._store.look("/", lambda _: self._post(self._answered, sent_s, session_id), lambda: None)

    def _answered(self, sent_s: float, session_id: int) -> None:
        if session_id == self._session_id == self._store.session_id:
            was_fenced = self.is_fenced
            self._extend(sent_s)
            if was_fenced and not self.is_fenced:
                _logger.warning("reconnected to the catalog, in the same session")
                self._may_lead_again()

    def _extend(self, sent_s: float) -> None:
        self._lease.answered(sent_s, self._store.timeout_s)
        if self._ending is not None:
            self._ending.cancel()
        loop = asyncio.get_running_loop()
        self._ending = loop.call_later(self._lease.left_s(now_s()), self._ran_out)

    def _ran_out(self) -> None:
        if self.is_fenced:
            _logger.warning("lost contact with the catalog: fenced as leader until it is restored")
            self._lost()

    def _lost(self) -> None:
        for callback in self._on_lost:
            callback()

    # The session

    def _changed(self, session: Session) -> None:
        """Handle a session event, in kazoo's thread."""
        self._post(self._changed_to, session)

    def _post(self, what: Callable[..., None], *args: object) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(what, *args)

    def _changed_to(self, session: Session) -> None:
        if self._is_stopped:
            return
        if session is Session.LOST:
            self._session_id = _NO_SESSION
            self._lease.end()
            _logger.warning("the catalog session has expired")
            self._lost()
        elif session is Session.CONNECTED and self._session_id == _NO_SESSION:
            self._spawn(self._begin_new_session())

    async def _begin_new_session(self) -> None:
        try:
            await self._register_again()
        except (Disconnected, ConfigError) as failed:
            _logger.warning("could not register in the new session: %s", failed)
            if not self._is_stopped and self._store.is_connected:
                await asyncio.sleep(ask_every_s(self._store.timeout_s))
                self._changed_to(Session.CONNECTED)
            return
        self._may_lead_again()
