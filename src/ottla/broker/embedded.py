"""The broker embedded in a Python program: in a separate thread, or in a running event loop."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ottla.broker.broker import Broker
from ottla.broker.settings import Settings
from ottla.event_loop import new_event_loop

if TYPE_CHECKING:
    import tempfile
    from collections.abc import Coroutine
    from typing import Any, Self, TypeVar

    from ottla.broker.inherited import Inherited
    from ottla.core.clock import Clock

    T = TypeVar("T")


class EmbeddedBroker:
    """`with EmbeddedBroker() as broker:` or `async with EmbeddedBroker() as broker:`.

    Without a `data_dir` it uses a temporary folder and removes it at the end. The port is a free one
    unless the settings contain one.
    """

    def __init__(
        self,
        data_dir: str | Path | None = None,
        settings: Settings | None = None,
        clock: Clock | None = None,
        *,
        is_short_lived: bool = False,
        inherited: Inherited | None = None,
    ) -> None:
        """A short-lived broker imports modules on demand: it does not run out of file descriptors.

        With `inherited` it is a member of a cluster whose catalog is in this program.
        """
        self._data_dir = data_dir
        self._clock = clock
        self._is_short_lived = is_short_lived
        self._inherited = inherited
        self._given = settings
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._broker: Broker | None = None
        self._loading: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients."""
        return str(self._running.address)

    @property
    def broker(self) -> Broker:
        """The broker object; it belongs to its event loop."""
        return self._running

    @property
    def _running(self) -> Broker:
        if self._broker is None:
            raise RuntimeError("the broker is not running; use it in a `with` or `async with` block")
        return self._broker

    # In a separate thread

    def __enter__(self) -> Self:
        self._refuse_twice()
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ottla-broker", daemon=True)
        self._thread.start()
        try:
            self.call(self._start())
        except BaseException:
            self._end_thread()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.call(self._stop())
        finally:
            self._end_thread()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Call this function in the broker's thread, and return its result."""
        assert self._loop is not None  # noqa: S101 - set before the thread starts
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end_thread(self) -> None:
        if self._loop is not None and self._thread is not None:
            self.call(self._loop.shutdown_default_executor())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
        self._loop = self._thread = None

    # In a running event loop

    async def __aenter__(self) -> Self:
        self._refuse_twice()
        await self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()

    def _refuse_twice(self) -> None:
        if self._broker is not None:
            raise RuntimeError("the broker is already running")

    async def _start(self) -> None:
        settings = self._settings()
        try:
            broker = Broker(settings, self._clock, self._inherited)
            try:
                await broker.start()
            except BaseException:
                broker.close()
                raise
        except BaseException:
            self._remove_temporary()
            raise
        self._broker = broker
        if not self._is_short_lived:
            self._loading = asyncio.create_task(broker.dispatcher.load_all())

    def _settings(self) -> Settings:
        if self._data_dir is None:
            import tempfile

            self._temporary = tempfile.TemporaryDirectory(prefix="ottla-")
        folder = Path(self._temporary.name if self._temporary is not None else self._data_dir or "")
        base = self._given or Settings()
        net = base.net if self._given is not None else replace(base.net, port=0)
        return base._replace(broker=replace(base.broker, data_dir=folder), net=net)

    async def _stop(self) -> None:
        broker, self._broker = self._running, None
        if self._loading is not None:
            self._loading.cancel()
        try:
            await broker.stop()
        finally:
            self._remove_temporary()

    def _remove_temporary(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None
