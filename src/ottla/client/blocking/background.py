"""An asyncio client in a background thread, which never blocks program exit."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import warnings
import weakref
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ottla.client.client import Client
from ottla.client.errors import ClientClosed, ClientError
from ottla.event_loop import new_event_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from ottla.client.options import ClientOptions

T = TypeVar("T")
_log: Final = logging.getLogger(__name__)

_LAST_CHANCE_S: Final = 5.0
"""How long an unclosed client may take to send buffered records at exit."""


class Background:
    def __init__(self, what: str, servers: str | Iterable[str], options: ClientOptions) -> None:
        self._what = what
        self._pid = os.getpid()
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"ottla-{what}", daemon=True)
        self._is_closed = False
        self._thread.start()
        try:
            self.client = Client(servers, **options)
            self.call(self.client.start())
        except BaseException:
            self._end_loop()
            raise

    def call(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Run a coroutine in the background loop and wait for the result."""
        try:
            self._refuse_if_unusable()
        except BaseException:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout_s)
        except BaseException:  # an interrupt must not leave it running either
            future.cancel()
            raise

    def do(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a plain function in the background loop."""

        async def done() -> T:
            return function(*arguments)

        return self.call(done())

    def _refuse_if_unusable(self) -> None:
        if self._is_closed:
            raise ClientClosed(f"the {self._what} is closed; create a new one")
        if os.getpid() != self._pid:
            raise ClientClosed(f"the {self._what} cannot be used after a fork; create a new one in the child process")
        if threading.get_ident() == self._thread.ident:
            raise ClientError(f"a callback of the {self._what} must not block on it: that would deadlock its thread")

    def close(self) -> None:
        """Close the client and everything it created. Idempotent, and a no-op in a forked process."""
        if self._is_closed or os.getpid() != self._pid:
            return
        self._refuse_if_unusable()
        try:
            self.call(self.client.close())
        finally:
            self._is_closed = True
            self._end_loop()

    def _end_loop(self) -> None:
        # In the background loop: in a notebook another event loop runs in this thread.
        asyncio.run_coroutine_threadsafe(self._loop.shutdown_default_executor(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def closes_with(self, owner: object) -> None:
        """Close when the owner is garbage collected, or at exit, without having been closed."""
        weakref.finalize(owner, self._close_forgotten)

    def _close_forgotten(self) -> None:
        if self._is_closed or os.getpid() != self._pid:
            return
        warnings.warn(f"a {self._what} was not closed; use it in a `with` block", ResourceWarning, stacklevel=2)
        if threading.get_ident() == self._thread.ident:
            # Garbage collection ran in the background thread, which cannot wait for itself.
            self._is_closed = True
            asyncio.ensure_future(self.client.close(), loop=self._loop).add_done_callback(lambda _: self._loop.stop())
            return
        try:
            self.call(self.client.close(), _LAST_CHANCE_S)
        except (ClientError, TimeoutError) as failed:
            _log.error("the %s was not closed; closing it at exit failed: %r", self._what, failed)
        self._is_closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
