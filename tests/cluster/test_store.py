"""The contract of a cluster's metadata store, for ZooKeeper and for the supervisor of workers."""

from __future__ import annotations

import asyncio
import queue
import socket
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from ottla.cluster.builtin.keeper import Keeper
from ottla.cluster.builtin.link import CatalogLink
from ottla.cluster.config import ClusterConfig
from ottla.cluster.operations import Check, Conflict, Create, Delete, Disconnected, Put
from ottla.cluster.store import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ottla.cluster.store import Store

PATIENCE_S = 20


class KeptHere:
    """The supervisor's store in a thread of the test's process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._keeper = self._call(self._open())
        self._serving: list[Any] = []

    def _call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    async def _open(self) -> Keeper:
        return Keeper(self._folder)

    def connect(self) -> CatalogLink:
        ours, its = socket.socketpair()
        self._serving.append(asyncio.run_coroutine_threadsafe(self._keeper.serve(ours), self._loop))
        link = CatalogLink(its, 6.0)
        link.open()
        return link

    def close(self) -> None:
        """Like a killed supervisor: all connections are closed."""
        for serving in self._serving:
            serving.cancel()
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    async def _close(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)
        self._keeper.close()


@contextmanager
def kept_here(folder: Path) -> Iterator[KeptHere]:
    kept = KeptHere(folder)
    try:
        yield kept
    finally:
        kept.close()


@pytest.fixture(params=["built in", "ZooKeeper"])
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Each call opens another session with the same store."""
    with ExitStack() as closing:
        if request.param == "built in":
            open_one: Callable[[], Store] = closing.enter_context(kept_here(tmp_path)).connect
        else:
            address = request.getfixturevalue("zookeeper")

            def open_one() -> Store:
                from ottla.cluster.zookeeper import ZooKeeper

                store = ZooKeeper(ClusterConfig(zookeeper=address))
                store.open()
                return store

        def connected() -> Store:
            store = open_one()
            closing.callback(store.close)
            return store

        yield connected


class Answers:
    """The callbacks of a store, in order."""

    def __init__(self) -> None:
        self._told: queue.Queue[Any] = queue.Queue()
        self.tell = self._told.put

    def failed(self) -> None:
        self._told.put("failed")

    def next(self) -> Any:
        return self._told.get(timeout=PATIENCE_S)


def test_a_change_increments_the_version_and_applies_only_to_the_expected_one(connect: Callable[[], Store]) -> None:
    store = connect()
    store.commit([Create("/a", b"1"), Create("/a/b", b"2")])
    first = store.read("/a/b")
    assert first is not None
    assert (first.data, first.version, first.owner) == (b"2", 0, 0)

    store.commit([Put("/a/b", b"3", 0)])
    changed = store.read("/a/b")
    assert changed is not None
    assert (changed.data, changed.version, changed.created) == (b"3", 1, first.created)
    with pytest.raises(Conflict):
        store.commit([Put("/a/b", b"4", 0)])
    with pytest.raises(Conflict):
        store.commit([Delete("/a/b", 0)])
    store.commit([Delete("/a/b", 1)])
    assert store.read("/a/b") is None


@pytest.mark.parametrize(
    ("misfit", "index"),
    [
        (Create("/a"), 1),
        (Create("/nowhere/a"), 1),
        (Put("/b", b"", 0), 1),
        (Delete("/full"), 1),
        (Check("/a", 7), 1),
    ],
)
def test_changes_are_atomic(connect: Callable[[], Store], misfit: Any, index: int) -> None:
    store = connect()
    store.commit([Create("/a"), Create("/full"), Create("/full/a")])

    with pytest.raises(Conflict) as refused:
        store.commit([Create("/new"), misfit])

    assert refused.value.index == index
    assert store.read("/new") is None


def test_later_changes_of_a_transaction_see_the_earlier_ones(connect: Callable[[], Store]) -> None:
    store = connect()

    store.commit([Create("/a"), Create("/a/b"), Put("/a", b"2", 0), Check("/a", 1), Delete("/a/b"), Delete("/a", 1)])

    assert store.read("/a") is None


def test_sequential_nodes_have_increasing_numbers(connect: Callable[[], Store]) -> None:
    store = connect()
    numbers = []
    for _ in range(3):
        store.commit([Create("/a", is_ephemeral=True)])
        node = store.read("/a")
        assert node is not None
        numbers.append(node.created)
        store.commit([Delete("/a")])

    assert numbers == sorted(set(numbers))


def test_ephemeral_nodes_are_removed_with_their_session_and_watches_fire(connect: Callable[[], Store]) -> None:
    mine, other = connect(), connect()
    mine.commit([Create("/brokers")])
    mine.commit([Create("/brokers/1", b"me", is_ephemeral=True)])
    node = other.read("/brokers/1")
    assert node is not None
    assert node.owner == mine.session_id != other.session_id
    seen, watched = Answers(), Answers()
    other.list("/brokers", seen.tell, seen.failed, watched.tell)
    assert seen.next() == ["1"]

    mine.close()

    assert watched.next() == "/brokers"
    assert other.read("/brokers/1") is None


def test_a_watch_fires_once(connect: Callable[[], Store]) -> None:
    mine, other = connect(), connect()
    mine.commit([Create("/a", b"1")])
    seen, watched = Answers(), Answers()
    other.look("/a", seen.tell, seen.failed, watched.tell)
    assert seen.next().data == b"1"

    mine.commit([Put("/a", b"2", 0)])
    mine.commit([Put("/a", b"3", 1)])
    mine.commit([Create("/b")])

    assert watched.next() == "/a"
    other.look("/b", seen.tell, seen.failed, watched.tell)
    assert seen.next().data == b""
    mine.commit([Delete("/b")])
    assert watched.next() == "/b"


def test_a_watch_can_wait_for_a_missing_node(connect: Callable[[], Store]) -> None:
    mine, other = connect(), connect()
    seen, watched = Answers(), Answers()
    other.look("/a", seen.tell, seen.failed, watched.tell)
    assert seen.next() is None
    other.look_out("/a", seen.tell, seen.failed, watched.tell)
    assert seen.next() is False

    mine.commit([Create("/a")])

    assert watched.next() == "/a"
    other.list("/nothing", seen.tell, seen.failed, watched.tell)
    assert seen.next() is None


def test_equal_watches_of_a_node_fire_once(connect: Callable[[], Store]) -> None:
    store = connect()
    store.commit([Create("/a"), Create("/b")])
    seen, watched = Answers(), Answers()
    for path in ("/a", "/a", "/b"):
        store.look(path, seen.tell, seen.failed, watched.tell)
        seen.next()

    store.commit([Delete("/a")])
    store.commit([Delete("/b")])

    assert [watched.next(), watched.next()] == ["/a", "/b"]


# The built-in store only


def test_committed_changes_survive_reopening_the_catalog(tmp_path: Path) -> None:
    with kept_here(tmp_path) as kept:
        link = kept.connect()
        link.commit([Create("/a", b"1"), Create("/b"), Create("/here", is_ephemeral=True)])
        link.commit([Put("/a", b"2", 0), Delete("/b")])
        before = link.read("/here")
        link.close()

    with kept_here(tmp_path) as kept:
        link = kept.connect()
        node = link.read("/a")
        assert node is not None
        assert (node.data, node.version) == (b"2", 1)
        assert link.read("/b") is None
        assert link.read("/here") is None
        link.commit([Create("/here", is_ephemeral=True)])
        after = link.read("/here")
        assert before is not None
        assert after is not None
        assert after.created > before.created
        link.close()


def test_a_worker_notices_at_once_that_its_supervisor_died(tmp_path: Path) -> None:
    told = Answers()
    with kept_here(tmp_path) as kept:
        link = kept.connect()
        link.listen(told.tell)

    assert told.next() is Session.LOST
    assert not link.is_connected
    link.look("/", told.tell, told.failed)
    assert told.next() == "failed"
    with pytest.raises(Disconnected):
        link.commit([Create("/a")])
    link.close()


def test_a_change_that_cannot_be_written_to_disk_is_not_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ottla.cluster.builtin.file import CatalogFile
    from ottla.core.errors import StorageError

    def refuse(*_: object) -> None:
        raise StorageError("the disk is full")

    with kept_here(tmp_path) as kept:
        link = kept.connect()
        monkeypatch.setattr(CatalogFile, "write", refuse)
        with pytest.raises(Disconnected, match="full"):
            link.commit([Create("/a")])
        assert link.read("/a") is None
        link.close()
