"""Malformed, oversized, slow or misdirected requests: a clear error, nothing written, other clients unaffected."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import httpx
import pytest

from ottla.http.config import HttpConfig

from .serving import PATIENCE_S, HttpBroker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIMIT = 10_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpBroker]:
    config = HttpConfig(port=0, max_body_bytes=LIMIT, max_stalled_ms=300, keep_alive_ms=60_000)
    with HttpBroker(tmp_path_factory.mktemp("broker"), config) as served:
        yield served


def exchange(served: HttpBroker, sent: bytes, *, half_close: bool = False) -> bytes:
    """Send this; returns all bytes until the server closes."""
    with socket.create_connection(served.http.address, PATIENCE_S) as connection:
        connection.sendall(sent)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        received = b""
        try:
            while data := connection.recv(65536):
                received += data
        except ConnectionResetError:
            pass
        return received


def is_well(served: HttpBroker) -> bool:
    return served.client.get("/health").status_code == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"\xff" * 100 + b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff",
        b"GET /health HTTP/9.9\r\n\r\n",
        b"POST /v1/topics HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n{}",
        b"POST /v1/topics HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/topics HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"GET /health HTTP/1.1\r\nbad header\r\n\r\n",
    ],
)
def test_input_that_is_not_http_is_refused_and_closes_only_that_connection(served: HttpBroker, sent: bytes) -> None:
    received = exchange(served, sent, half_close=True)
    assert received == b"" or received.startswith(b"HTTP/1.1 400 Bad Request\r\n"), received
    assert is_well(served)


def test_an_endless_head_is_refused(served: HttpBroker) -> None:
    assert exchange(served, b"GET /" + b"x" * 100_000).startswith(b"HTTP/1.1 431 ")
    assert exchange(served, b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000).startswith(b"HTTP/1.1 431 ")
    assert is_well(served)


def test_an_incomplete_head_times_out(served: HttpBroker) -> None:
    assert exchange(served, b"GET /health HT").startswith(b"HTTP/1.1 408 ")
    assert exchange(served, b"") == b""


def test_an_incomplete_body_times_out_and_nothing_is_written(served: HttpBroker) -> None:
    head = b"POST /v1/topics/stalled/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n"
    assert exchange(served, head + b'{"messages"').startswith(b"HTTP/1.1 408 ")
    assert served.client.get("/v1/topics/stalled").status_code == 404


def test_an_aborted_body_writes_nothing(served: HttpBroker) -> None:
    head = b"POST /v1/topics/broken/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n"
    with socket.create_connection(served.http.address, PATIENCE_S) as connection:
        connection.sendall(head + b'{"messages":[{"value":"x"}]}')
    assert is_well(served)
    assert served.client.get("/v1/topics/broken").status_code == 404


def test_a_body_over_the_limit_is_refused_before_it_arrives(served: HttpBroker) -> None:
    head = f"POST /v1/topics/large/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {LIMIT + 1}\r\n\r\n"
    received = exchange(served, head.encode())
    assert received.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in received
    assert b"application/problem+json" in received


def test_a_body_without_a_length_is_refused_once_it_is_over_the_limit(served: HttpBroker) -> None:
    head = b"POST /v1/topics/large/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    chunk = b"1000\r\n" + b"x" * 4096 + b"\r\n"
    assert exchange(served, head + chunk * 4).startswith(b"HTTP/1.1 413 ")
    assert served.client.get("/v1/topics/large").status_code == 404


def test_a_line_over_the_limit_ends_a_stream(served: HttpBroker) -> None:
    body = b'{"value":"a"}\n{"value":"' + b"x" * 3 * LIMIT
    refused = served.client.post(
        "/v1/topics/lines/messages", content=body, headers={"content-type": "application/x-ndjson"}
    )
    assert (refused.status_code, refused.json()["written"]) == (413, 1)


def test_a_response_that_is_not_read_times_out(served: HttpBroker) -> None:
    # More than what the sockets' buffers take.
    lines = b'{"value":"%b"}\n' % (b"x" * 9_000) * 3_000
    ndjson = {"content-type": "application/x-ndjson"}
    assert served.client.post("/v1/topics/unread/messages", content=lines, headers=ndjson).json()["written"] == 3_000
    ask = b"GET /v1/topics/unread/messages HTTP/1.1\r\nhost: x\r\naccept: application/x-ndjson\r\n\r\n"
    before = refused_connections(served)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(PATIENCE_S)
        connection.connect(served.http.address)
        connection.sendall(ask)
        while refused_connections(served) == before:
            assert is_well(served)
        received = 0
        while data := connection.recv(65536):
            received += len(data)
        assert 0 < received < len(lines)


def refused_connections(served: HttpBroker) -> int:
    lines = served.client.get("/metrics").text.splitlines()
    [line] = [one for one in lines if one.startswith("ottla_http_refused_connections_total")]
    return int(line.split()[-1])


def test_requests_on_one_connection_are_answered_in_order(served: HttpBroker) -> None:
    asked = (
        b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n" * 3 + b"GET /nope HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    )
    received = exchange(served, asked)
    assert received.count(b"HTTP/1.1 200 OK") == 3
    assert received.count(b"HTTP/1.1 404 Not Found") == 1
    assert received.rindex(b"200 OK") < received.index(b"404 Not Found")


def test_an_upgrade_is_not_taken(served: HttpBroker) -> None:
    upgrade = (
        b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
    )
    received = exchange(served, upgrade + b"sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", half_close=True)
    assert b"101" not in received.split(b"\r\n", 1)[0]
    assert is_well(served)


@pytest.mark.parametrize("path", ["/%2e%2e%2fetc/passwd", "/../../etc/passwd", "/v1/topics//messages", "/v1/", "//"])
def test_unknown_paths_are_not_found(served: HttpBroker, path: str) -> None:
    received = exchange(served, f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
    assert received.startswith(b"HTTP/1.1 404 "), received
    assert b"application/problem+json" in received


def test_a_wrong_method_is_distinguished_from_a_wrong_path(served: HttpBroker) -> None:
    refused = served.client.put("/v1/topics", json={})
    assert (refused.status_code, refused.headers["content-type"]) == (405, "application/problem+json")


def trickle(served: HttpBroker, path: str) -> bytes:
    """Send a body one byte at a time, as slowly as the server allows; returns the response."""
    with socket.create_connection(served.http.address, PATIENCE_S) as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 9000\r\n\r\n".encode())
        connection.settimeout(0.05)
        deadline_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s:
            connection.sendall(b" ")
            with suppress(TimeoutError):
                return connection.recv(65536)
    return b"no answer"


@pytest.mark.parametrize(
    "path", ["/v1/topics/slow/messages", "/v1/topics", "/api/v1/queues", "/api/v1/queues/q/messages"]
)
def test_a_body_that_arrives_too_slowly_is_refused(served: HttpBroker, path: str) -> None:
    assert trickle(served, path).startswith(b"HTTP/1.1 408 ")
    assert is_well(served)


def test_an_incomplete_body_for_a_queue_times_out(served: HttpBroker) -> None:
    head = b"POST /api/v1/queues/q/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n"
    assert exchange(served, head + b"half").startswith(b"HTTP/1.1 408 ")


def test_of_too_many_concurrent_bodies_the_oldest_is_dropped(tmp_path: Path) -> None:
    config = HttpConfig(port=0, max_body_bytes=10_000, max_held_bytes=25_000)
    head = b"POST /v1/topics/t/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 9500\r\n\r\n"
    with HttpBroker(tmp_path, config) as served, ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection(served.http.address, PATIENCE_S)) for _ in range(3)]
        for connection in opened:
            connection.sendall(head + bytes(9000))
        assert opened[0].recv(65536).startswith(b"HTTP/1.1 503 ")
        for connection in opened[1:]:
            connection.sendall(bytes(500))
            assert connection.recv(65536).startswith(b"HTTP/1.1 400 ")


def opened(served: HttpBroker, stack: ExitStack, count: int) -> list[socket.socket]:
    return [stack.enter_context(socket.create_connection(served.http.address, PATIENCE_S)) for _ in range(count)]


def test_idle_connections_are_closed_for_new_ones(tmp_path: Path) -> None:
    config = HttpConfig(port=0, max_connections=3)
    with HttpBroker(tmp_path, config) as few, ExitStack() as stack:
        first, *_ = opened(few, stack, 3)
        for path in ("/health", "/ready", "/v1/topics"):
            assert few.client.get(path).status_code == 200
        assert first.recv(1) == b""


def test_if_all_connections_are_busy_only_health_checks_are_answered(tmp_path: Path) -> None:
    config = HttpConfig(port=0, max_connections=3)
    tail = b"GET /v1/topics/t/tail HTTP/1.1\r\nhost: x\r\n\r\n"
    with HttpBroker(tmp_path, config) as few, ExitStack() as stack:
        assert few.client.post("/v1/topics", json={"name": "t"}).status_code == 201
        few.client.close()
        for connection in opened(few, stack, 3):
            connection.sendall(tail)
            assert connection.recv(1)
        few.client = httpx.Client(base_url=few.url, timeout=PATIENCE_S)
        assert few.client.get("/health").status_code == 200
        assert few.client.get("/ready").status_code == 200
        refused = few.client.get("/v1/topics")
        assert (refused.status_code, refused.json()["detail"]) == (503, "too many connections")


def test_connections_per_address_are_limited(tmp_path: Path) -> None:
    config = HttpConfig(port=0, max_connections=100, max_connections_per_address=2)
    with HttpBroker(tmp_path, config) as few, ExitStack() as stack:
        first, *_ = opened(few, stack, 2)
        assert few.client.get("/v1/topics").status_code == 200
        assert first.recv(1) == b""


def test_every_response_has_nosniff(served: HttpBroker) -> None:
    for path in ("/v1/topics", "/v1/nothing", "/metrics", "/api/v1/queues", "/"):
        headers = served.client.get(path).headers
        assert headers.get_list("x-content-type-options") == ["nosniff"], path
        assert headers.get_list("cross-origin-resource-policy") == ["same-origin"], path
