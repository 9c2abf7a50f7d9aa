"""A broker for one test: in this process, in memory, removed afterwards."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ottla.broker.embedded import EmbeddedBroker
from ottla.broker.faults.faults import Faults
from ottla.broker.faults.watching import watch
from ottla.broker.interfaces.in_process_requests import LocalClient
from ottla.testing import groups
from ottla.testing.clock import MovableClock, catch_up
from ottla.testing.content import create, read_all, replay, write
from ottla.testing.defaults import for_tests
from ottla.testing.folder import ephemeral_folder
from ottla.testing.history import History

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping
    from typing import Any, Self, TypeVar

    from ottla.broker.broker import Broker
    from ottla.broker.settings import Settings
    from ottla.core.ids import TopicPartition
    from ottla.http.server import HttpServer
    from ottla.records.encode import Headers
    from ottla.records.reader import Record
    from ottla.testing.snapshots import Snapshot

    T = TypeVar("T")

_LOOK_EVERY_S: Final = 0.002
_NAME: Final = "ottla-testing"


class EphemeralBroker:
    """`with ottla.testing.broker() as broker:`; in pytest the fixture `ottla` is one.

    It runs in a background thread, and its methods may be called from any thread, including that of an event loop: all
    of them return at once, except those that wait.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        """`settings` are all settings except port and folder, which are always new."""
        self._settings = for_tests(settings)
        self.requests = History()
        """The history of requests."""
        self.faults = Faults()
        """Fault injection."""
        self.clock = MovableClock(self._clock_moved)
        """The broker's clock."""
        self._closing = ExitStack()
        self._folder = Path()
        self._snapshots = count(1)
        self._embedded: EmbeddedBroker | None = None
        self._own: LocalClient | None = None
        self._http: HttpServer | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The bootstrap address."""
        return self._running.bootstrap_servers

    @property
    def schema_registry_url(self) -> str:
        """The address of the schema registry, served from the first access on."""
        if self._http is None:
            self._serve_http(0)
        if self._http is None:
            raise RuntimeError("HTTP is not served")
        return self._http.schema_registry_url

    def _serve_http(self, port: int) -> None:
        from ottla.http.config import HttpConfig
        from ottla.http.queues.config import QueuesConfig
        from ottla.http.server import HttpServer

        queues = QueuesConfig(data_directory=self._folder / "queues")
        http = HttpServer(self.broker, HttpConfig(port=port), "127.0.0.1", queues)

        async def start() -> None:
            await http.bind()
            http.start()

        self.call(start())
        self._http = http

    @property
    def broker(self) -> Broker:
        """The broker; it belongs to its event loop."""
        return self._running.broker

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        if self._embedded is not None:
            raise RuntimeError("the broker is already running")
        with ExitStack() as undoing:
            self._folder = undoing.enter_context(ephemeral_folder())
            self._open(self._settings)
            undoing.callback(self._close)
            undoing.callback(self.faults.forget_broker)
            self._closing = undoing.pop_all()

    def stop(self) -> None:
        """Disconnect all clients, and delete all data. Idempotent."""
        self._closing.close()

    def restart(self) -> None:
        """Disconnect all clients, and restart at the same address with the same data."""
        self._reopen(lambda: None)

    def snapshot(self) -> Snapshot:
        """A snapshot of all data."""
        from ottla.testing.snapshots import Snapshot

        folder = self._folder / f"snapshot-{next(self._snapshots)}"
        return self._do(lambda: Snapshot.take(self._data_dir, folder))

    def restore(self, snapshot: Snapshot) -> None:
        """Restore a snapshot. Clients are disconnected, and reconnect to the same address."""
        if snapshot.folder.parent != self._folder:
            raise ValueError("this snapshot was made by another broker")
        self._reopen(lambda: snapshot.put_back(self._data_dir))

    # Topics and records

    def create_topic(self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        self.call(create(self._client, name, partitions, configs))

    def topics(self) -> list[str]:
        """The names of all topics except internal ones."""
        return self._do(lambda: sorted(n for n, one in self.broker.topics.by_name.items() if not one.entry.is_internal))

    def produce(
        self,
        topic: str,
        *values: bytes | str | None,
        key: bytes | str | None = None,
        partition: int = 0,
        headers: Headers = (),
    ) -> int:
        """Append a record per value, and return the offset of the first. A missing topic is created."""
        return self.call(write(self.broker, self._client, topic, partition, values, key=key, headers=headers))

    def replay(self, file: str | Path, topic: str | None = None) -> int:
        """Write the records of an `ottla record` file, and return their number."""
        return self.call(replay(self.broker, self._client, Path(file), topic))

    def records(self, topic: str) -> list[Record]:
        """All records of the topic, by partition and offset, without aborted ones."""
        return self.call(read_all(self.broker, self._client, topic))

    def wait_for_records(self, topic: str, count: int = 1, *, timeout_s: float = 10.0) -> list[Record]:
        """All records of the topic, once there are at least `count`."""
        found: list[Record] = []

        async def too_few() -> str | None:
            if topic in self.broker.topics.by_name:
                found[:] = await read_all(self.broker, self._client, topic)
            return None if len(found) >= count else f"topic {topic!r} has {len(found)} of {count} records"

        self.call(_until_none(too_few, timeout_s))
        return found

    # Groups

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """The group's committed offsets."""
        return self._do(lambda: groups.committed(self.broker, group))

    def lag(self, group: str, *topics: str) -> dict[TopicPartition, int]:
        """The group's lag, in these topics or in those it has committed for."""
        return self._do(lambda: groups.lags(self.broker, group, topics))

    def wait_for_group(self, group: str, members: int = 1, *, timeout_s: float = 10.0) -> None:
        """Return once the group is stable with this number of members; with 0, once it is empty."""
        self._wait(lambda: groups.not_stable(self.broker, group, members), timeout_s)

    def wait_for_lag_zero(self, group: str, *topics: str, timeout_s: float = 10.0) -> None:
        """Return once the group's lag is zero."""
        self._wait(lambda: groups.lagging(self.broker, group, topics), timeout_s)

    # In the broker's thread

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run this in the broker's thread, which owns its state; returns its result."""
        return self._running.call(work)

    @property
    def _running(self) -> EmbeddedBroker:
        if self._embedded is None:
            raise RuntimeError("the broker is not running; use it in a `with` block")
        return self._embedded

    @property
    def _client(self) -> LocalClient:
        if self._own is None:
            raise RuntimeError("the broker is not running; use it in a `with` block")
        return self._own

    def _watch(self) -> None:
        broker = self.broker
        self._own = LocalClient(broker, _NAME, ("127.0.0.1", 0))
        watch(broker, self.faults, self.requests.add, self._own)

    @property
    def _data_dir(self) -> Path:
        return self._folder / "data"

    def _open(self, settings: Settings) -> None:
        embedded = EmbeddedBroker(self._data_dir, settings, self.clock, is_short_lived=True)
        self._embedded = embedded.__enter__()
        self._do(self._watch)

    def _close(self) -> None:
        if self._http is not None:
            http, self._http = self._http, None
            self.call(http.stop())
        embedded, self._embedded, self._own = self._running, None, None
        embedded.__exit__()

    def _reopen(self, meanwhile: Callable[[], None]) -> None:
        port = self.broker.address.port
        http_port = None if self._http is None else self._http.address.port
        self._close()
        meanwhile()
        self._open(self._settings._replace(net=replace(self._settings.net, port=port)))
        if http_port is not None:
            self._serve_http(http_port)

    def _clock_moved(self) -> None:
        if self._embedded is not None:
            self._do(lambda: catch_up(self.broker))

    def _do(self, work: Callable[[], T]) -> T:
        async def done() -> T:
            return work()

        return self.call(done())

    def _wait(self, problem: Callable[[], str | None], timeout_s: float) -> None:
        async def look() -> str | None:
            return problem()

        self.call(_until_none(look, timeout_s))


async def _until_none(problem: Callable[[], Awaitable[str | None]], timeout_s: float) -> None:
    give_up_at_s = time.monotonic() + timeout_s
    while (found := await problem()) is not None:
        if time.monotonic() >= give_up_at_s:
            raise TimeoutError(f"after {timeout_s:g} s {found}")
        await asyncio.sleep(_LOOK_EVERY_S)
