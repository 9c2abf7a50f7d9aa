"""Without file descriptors new clients are refused, connected ones are served, and the listener recovers."""

from __future__ import annotations

import resource
import socket
import struct
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from ottla.net.descriptors import connections_that_fit

from .conftest import LOOPS
from .serving import PATIENCE_S, frame

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def process(loop: str) -> Iterator[tuple[int, int]]:
    """The port, and the allowed number of connections."""
    command = [sys.executable, "-m", "tests.net.out_of_descriptors", loop]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        port, allowed = map(int, child.stdout.readline().split())
        try:
            yield port, allowed
        finally:
            child.stdin.close()
            assert child.wait(PATIENCE_S) == 0


def ask(connection: socket.socket, payload: bytes) -> bytes:
    connection.sendall(frame(payload))
    [size] = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL) or b"\xff\xff\xff\xff")
    if size < 0:
        raise ConnectionResetError
    return connection.recv(size, socket.MSG_WAITALL)


def is_served(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=0.2) as connection:
        try:
            return ask(connection, b"hello") == b"hello"
        except (ConnectionError, TimeoutError):
            return False


@pytest.mark.parametrize("loop", LOOPS)
def test_a_process_without_descriptors_keeps_serving_and_accepts_again_later(loop: str) -> None:
    with process(loop) as (port, _), socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as old:
        assert ask(old, b"take") == b"Too many open files"
        for _ in range(3):
            assert not is_served(port)
        assert ask(old, b"hello") == b"hello"

        ask(old, b"give back")
        deadline = time.monotonic() + PATIENCE_S
        while not is_served(port):
            assert time.monotonic() < deadline
        assert ask(old, b"hello") == b"hello"


@pytest.mark.parametrize("loop", LOOPS)
def test_connections_leave_descriptors_for_the_logs(loop: str) -> None:
    with process(loop) as (port, allowed):
        assert allowed == 48
        connections = [socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) for _ in range(allowed)]
        try:
            for connection in connections:
                assert ask(connection, b"hello") == b"hello"
            assert not is_served(port)
        finally:
            for connection in connections:
                connection.close()


def test_a_quarter_of_the_descriptors_is_reserved_up_to_a_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1000, 1000))
    assert connections_that_fit(20_000) == 750
    assert connections_that_fit(10) == 10
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100_000, 100_000))
    assert connections_that_fit(200_000) == 98_976
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert connections_that_fit(20_000) == 20_000
