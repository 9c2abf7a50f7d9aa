"""The broker embedded in a Python program: it starts, stops, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import TYPE_CHECKING

import pytest
import uvloop
from msgspec.structs import replace

import ottla
from ottla.broker import embedded
from ottla.broker.settings import Settings
from ottla.core.errors import DataDirError
from ottla.storage.folder.data_dir import CLEAN_SHUTDOWN

from .making import create_topic, produce, values_in
from .raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def folder_of(broker: ottla.Broker) -> Path:
    return broker.broker.data_dir.path


def works(broker: ottla.Broker) -> bool:
    with RawClient(broker.bootstrap_servers) as client:
        create_topic(client, "t")
        produce(client, "t", b"x")
        return values_in(client, "t") == [b"x"]


def on_port(port: int) -> Settings:
    settings = Settings()
    return settings._replace(net=replace(settings.net, port=port))


def test_without_a_folder_it_creates_a_temporary_one_and_removes_it() -> None:
    with ottla.Broker() as broker:
        folder = folder_of(broker)
        assert folder.is_dir()
        assert works(broker)
    assert not folder.exists()


def test_a_given_folder_is_kept(tmp_path: Path) -> None:
    with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        create_topic(client, "t")
        produce(client, "t", b"kept")
    assert (tmp_path / CLEAN_SHUTDOWN).exists()
    with ottla.Broker(str(tmp_path)) as broker, RawClient(broker.bootstrap_servers) as client:
        assert values_in(client, "t") == [b"kept"]


def test_a_broker_that_is_never_entered_creates_nothing(tmp_path: Path) -> None:
    ottla.Broker()
    ottla.Broker(tmp_path / "data")
    assert list(tmp_path.iterdir()) == []


def test_one_object_can_be_restarted_but_not_run_twice_at_once() -> None:
    broker = ottla.Broker()
    for _ in range(2):
        with broker:
            assert works(broker)
            with pytest.raises(RuntimeError, match="already running"):
                broker.__enter__()


def test_use_outside_of_the_with_block_is_an_error() -> None:
    broker = ottla.Broker()
    for what in ("bootstrap_servers", "broker"):
        with pytest.raises(RuntimeError, match="use it in a `with` or `async with` block"):
            getattr(broker, what)


def test_an_exception_in_the_block_stops_the_broker_and_propagates() -> None:
    def fail() -> None:
        with ottla.Broker() as broker:
            seen.append(folder_of(broker))
            raise KeyError("mine")

    seen: list[Path] = []
    with pytest.raises(KeyError, match="mine"):
        fail()
    assert not seen[0].exists()


def test_two_brokers_at_once() -> None:
    with ottla.Broker() as first, ottla.Broker() as second:
        assert first.bootstrap_servers != second.bootstrap_servers
        assert works(first)
        assert works(second)


def test_many_brokers_one_after_another() -> None:
    for _ in range(10):
        with ottla.Broker() as broker:
            assert works(broker)


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_it_runs_in_an_already_running_loop(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def scenario() -> Path:
        async with ottla.Broker() as broker, ottla.Broker() as other:
            assert broker.bootstrap_servers != other.bootstrap_servers
            for each in (broker, other):
                assert await asyncio.to_thread(works, each)
            folder = folder_of(broker)
        # The loop and its threads belong to the caller.
        assert await asyncio.to_thread(lambda: 5) == 5
        return folder

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert not runner.run(scenario()).exists()


def test_an_exception_in_an_async_block_stops_the_broker() -> None:
    async def scenario() -> None:
        async with ottla.Broker() as broker:
            seen.append(folder_of(broker))
            raise KeyError("mine")

    seen: list[Path] = []
    with pytest.raises(KeyError, match="mine"):
        asyncio.run(scenario())
    assert not seen[0].exists()


def test_it_runs_on_plain_asyncio_where_uvloop_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "new_event_loop", asyncio.new_event_loop)
    with ottla.Broker() as broker:
        assert works(broker)


# Starts that fail


def test_a_busy_port_leaves_no_thread_no_lock_and_no_folder(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = on_port(taken.getsockname()[1])
        with pytest.raises(OSError, match="in use"), ottla.Broker(tmp_path, settings):
            pass
        with pytest.raises(OSError, match="in use"), ottla.Broker(settings=settings):
            pass
    with ottla.Broker(tmp_path) as broker:
        assert works(broker)


def test_a_folder_in_use_is_refused_and_its_broker_keeps_running(tmp_path: Path) -> None:
    with ottla.Broker(tmp_path) as broker:
        with pytest.raises(DataDirError, match=r"is in use by process \d+, this one"), ottla.Broker(tmp_path):
            pass
        assert works(broker)


def test_a_damaged_catalog_leaves_no_lock(tmp_path: Path) -> None:
    with ottla.Broker(tmp_path) as broker:
        assert works(broker)
    catalog = tmp_path / "catalog.sqlite"
    whole = catalog.read_bytes()
    catalog.write_bytes(b"garbage" * 1000)
    with pytest.raises(DataDirError, match=r"catalog\.sqlite"), ottla.Broker(tmp_path):
        pass
    catalog.write_bytes(whole)
    with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        assert values_in(client, "t") == [b"x"]


def test_a_failed_async_start_leaves_nothing(tmp_path: Path) -> None:
    async def scenario(port: int) -> None:
        for data_dir in (tmp_path, None):
            with pytest.raises(OSError, match="in use"):
                async with ottla.Broker(data_dir, on_port(port)):
                    pass
        async with ottla.Broker(tmp_path) as broker:
            assert await asyncio.to_thread(works, broker)

    with socket.create_server(("127.0.0.1", 0)) as taken:
        asyncio.run(scenario(taken.getsockname()[1]))


# Stopping while busy


def test_it_stops_while_clients_are_connected_and_waiting() -> None:
    clients = []
    with ottla.Broker() as broker:
        for number in range(20):
            clients.append(client := RawClient(broker.bootstrap_servers))
            if number % 2:
                client.send_bytes(b"\x00\x00\x00\x50half")
        folder = folder_of(broker)
    assert not folder.exists()
    for client in clients:
        client.close()
