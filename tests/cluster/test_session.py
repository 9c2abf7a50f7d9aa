"""A node without a connection to ZooKeeper fences itself by its own clock, before another leader can be elected."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from ottla.cluster import membership
from ottla.cluster import node as node_module
from ottla.cluster.nodes import DATA_FOLDERS
from ottla.cluster.operations import Disconnected, Node
from ottla.cluster.server import ZooKeeperServer, free_port
from ottla.cluster.session import now_s
from ottla.cluster.state import NotInSession, PartitionKey
from ottla.cluster.store import Session
from ottla.cluster.zookeeper import ZooKeeper

from .conftest import why_there_is_no_zookeeper
from .nodes import TestNode
from .test_controller import create, states

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CLOSE_SESSION = -11
"""ZooKeeper's number of the request that ends a session."""


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """A ZooKeeper that the test may stop."""
    if reason := why_there_is_no_zookeeper():
        pytest.skip(reason)
    server = ZooKeeperServer(tmp_path / "zookeeper", free_port())
    server.start()
    yield server
    server.stop()


class Doorway:
    """A proxy in front of ZooKeeper that can be shut, or made to leave new connections hanging."""

    def __init__(self, address: str) -> None:
        self._host, _, port = address.partition(":")
        self._port = int(port)
        self.port = 0
        self.deaf_to = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Doorway:
        self._server = await asyncio.start_server(self._opened, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.shut()
        await asyncio.gather(*self._tasks)

    def shut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _opened(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        if self.deaf_to:
            self.deaf_to -= 1
            return
        there, back = await asyncio.open_connection(self._host, self._port)
        self._writers.add(back)
        for source, target in ((reader, back), (there, writer)):
            task = asyncio.get_running_loop().create_task(self._pass_on(source, target))
            self._tasks.add(task)

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await source.read(1 << 16):
                target.write(data)
        target.close()


def test_a_node_without_contact_to_zookeeper_fences_itself_before_its_session_expires(
    own_server: ZooKeeperServer,
) -> None:
    async def scenario() -> None:
        node = TestNode(own_server.address, 1, session_timeout_ms=2000)
        await node.start()
        topic_id = await create(node, "t", 1, 1)
        lost = asyncio.Event()
        node.cluster.on_session_lost(lost.set)
        assert not node.cluster.is_fenced

        os.kill(own_server.pid, signal.SIGSTOP)
        stopped_s = now_s()
        async with asyncio.timeout(10):
            await lost.wait()
        assert now_s() - stopped_s < node.connected.store.timeout_s
        assert node.cluster.is_fenced
        state = states(node)[0]
        with pytest.raises(NotInSession):
            await node.cluster.change_isr(PartitionKey(topic_id, 0), {1: -1}, state.leader_epoch, state.version)

        announced = asyncio.Event()
        node.cluster.listen(lambda change: announced.set() if change.partitions else None)
        os.kill(own_server.pid, signal.SIGCONT)
        async with asyncio.timeout(20):
            await announced.wait()
            while node.cluster.is_fenced:
                announced.clear()
                await announced.wait()
        assert states(node)[0].leader == 1
        await node.stop()

    asyncio.run(scenario())


def test_the_cluster_survives_a_zookeeper_restart(own_server: ZooKeeperServer) -> None:
    async def scenario() -> None:
        node = TestNode(own_server.address, 1, session_timeout_ms=20_000)
        await node.start()
        await create(node, "before", 1, 1)
        own_server.kill()
        await asyncio.get_running_loop().run_in_executor(None, own_server.start)

        await create(node, "after", 1, 1)
        assert [state.topic for state in states(node)] == ["after", "before"]
        await node.stop()

    asyncio.run(scenario())


def test_an_unresponsive_zookeeper_server_does_not_cost_the_session(
    zookeeper: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A starting server may behave like this."""

    async def scenario() -> None:
        address, path = zookeeper.split("/")
        async with Doorway(address) as doorway:
            # In a thread, like its stop: it waits for the proxy, which runs in this loop.
            node = await asyncio.to_thread(TestNode, f"127.0.0.1:{doorway.port}/{path}", 1, session_timeout_ms=4000)
            await node.start()
            session = node.connected.store.session_id
            loop, back = asyncio.get_running_loop(), asyncio.Event()

            def changed(now: Session) -> None:
                if now is Session.CONNECTED:
                    loop.call_soon_threadsafe(back.set)

            node.connected.store.listen(changed)
            doorway.shut()
            doorway.deaf_to = 1
            async with asyncio.timeout(20):
                await back.wait()
            assert doorway.deaf_to == 0
            assert node.connected.store.session_id == session
            await create(node, "t", 1, 1)
            await node.cluster.stop()
            await asyncio.to_thread(node.cluster.close)

    asyncio.run(scenario())
    assert [each.getMessage() for each in caplog.records if each.name == "ottla.cluster.zookeeper"] == [
        "the connection to ZooKeeper is suspended",
        "the connection to ZooKeeper is connected",
    ]


def test_after_an_expired_session_a_node_registers_again_and_catches_up(zookeeper: str) -> None:
    async def scenario() -> None:
        node, other = TestNode(zookeeper, 1, session_timeout_ms=2000), TestNode(zookeeper, 2)
        await node.start()
        await other.start()
        await other.until(lambda: set(other.cluster.view.brokers) == {1, 2})
        await create(other, "t", 4, 2)
        epoch = other.cluster.view.brokers[1].epoch
        lost, others_lead = asyncio.Event(), asyncio.Event()
        node.cluster.on_session_lost(lost.set)
        register_anew = node.cluster._session._register_again

        async def register_late() -> None:
            await others_lead.wait()
            await register_anew()

        node.cluster._session._register_again = register_late
        # The session is closed from outside, as if it had expired.
        session = node.connected.store._client.client_id  # type: ignore[attr-defined]
        await asyncio.to_thread(_end_session, zookeeper.partition("/")[0], *session)
        async with asyncio.timeout(20):
            await lost.wait()
        await other.until(lambda: all(state.leader == 2 for state in states(other)))
        assert node.cluster.is_fenced
        others_lead.set()
        await other.until(lambda: 1 in other.cluster.view.brokers and other.cluster.view.brokers[1].epoch > epoch)
        await node.until(lambda: not node.cluster.is_fenced and all(state.leader == 2 for state in states(node)))
        await node.stop()
        await other.stop()

    asyncio.run(scenario())


def _end_session(address: str, number: int, password: bytes) -> None:
    """Take the session over and close it with one packet, so that its owner cannot take it back in between."""
    connect = struct.pack(">iqiqi16sx", 0, 0, 2000, number, len(password), password)
    close = struct.pack(">ii", 1, _CLOSE_SESSION)
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port))) as thief:
        thief.sendall(b"".join(struct.pack(">i", len(each)) + each for each in (connect, close)))
        while thief.recv(1024):
            continue


def test_a_connection_lost_during_registration_does_not_fail_the_start(
    zookeeper: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, lost = membership.register, [Disconnected("ConnectionLoss")] * 2

    def register(*args: Any) -> None:
        if lost:
            raise lost.pop()
        really(*args)

    async def scenario() -> None:
        monkeypatch.setattr(node_module, "register", register)
        node = TestNode(zookeeper, 1)
        await node.start()
        await node.until(lambda: 1 in node.cluster.view.brokers)
        await node.stop()

    asyncio.run(scenario())
    assert lost == []


def test_a_connection_lost_while_the_catalog_is_first_read_does_not_fail_the_start(
    zookeeper: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, paths = ZooKeeper.read, set[str]()

    def read(store: ZooKeeper, path: str) -> Node | None:
        if path not in paths:
            paths.add(path)
            raise Disconnected("ConnectionLoss")
        return really(store, path)

    async def scenario() -> None:
        monkeypatch.setattr(ZooKeeper, "read", read)
        node = TestNode(zookeeper, 1)
        await node.start()
        await node.until(lambda: 1 in node.cluster.view.brokers)
        await node.stop()

    asyncio.run(scenario())
    assert any(path.startswith(DATA_FOLDERS) for path in paths)
