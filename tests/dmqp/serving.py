"""A broker with HTTP and DMQP listeners in a thread of this process, and a raw client."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Self

from tests.rest.serving import PATIENCE_S, HttpBroker

from ottla.dmqp.cluster_server import ClusterDmqpServer
from ottla.dmqp.config import DmqpConfig
from ottla.dmqp.frame import HEADER, HEADER_BYTES, Frame, Method, encode
from ottla.dmqp.server import DmqpServer

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.broker.settings import Settings


class DmqpBroker(HttpBroker):
    def __init__(self, folder: Path, config: DmqpConfig | None = None, settings: Settings | None = None) -> None:
        super().__init__(folder, settings=settings)
        self._dmqp = config or DmqpConfig()

    def __enter__(self) -> Self:
        super().__enter__()
        self.run(self._open_listener())
        return self

    def __exit__(self, *exc: object) -> None:
        self.run(self.server.stop())
        super().__exit__(*exc)

    async def _open_listener(self) -> None:
        self.broker.http_address = self.http.address
        self.server = (DmqpServer if self.broker.cluster is None else ClusterDmqpServer)(self.broker, self._dmqp)
        await self.server.start()
        self.broker.shard_server = self.server

    @property
    def bootstrap(self) -> str:
        return str(self.http.address)

    def exposed(self, topic: str, shards: int = 1) -> list[int]:
        """Create a topic with this many shards; returns their ports."""
        assert self.client.post("/v1/topics", json={"name": topic, "partitions": shards}).status_code == 201
        answer = self.client.post(f"/v1/dmqp/{topic}", json={})
        assert answer.status_code == 200, answer.text
        return [shard["port"] for shard in answer.json()["shards"]]


class RawShard:
    """A connection to a shard, byte by byte."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, content: bytes) -> None:
        self.socket.sendall(content)

    def receive(self) -> Frame:
        sequence_id, length, method, status = HEADER.unpack(self._read(HEADER_BYTES))
        return Frame(sequence_id, method, status, self._read(length))

    def ask(self, method: int, payload: bytes = b"", sequence_id: int = 0) -> Frame:
        self.send(encode(sequence_id, method, 0, payload))
        return self.receive()

    def push(self, payload: bytes, sequence_id: int = 0) -> Frame:
        return self.ask(Method.PUSH, payload, sequence_id)

    def pop(self) -> Frame:
        return self.ask(Method.POP)

    def peek(self) -> Frame:
        return self.ask(Method.PEEK_SEQUENCE_ID)

    def is_closed(self) -> bool:
        """Wait for the peer to close the connection."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _read(self, size: int) -> bytes:
        content = b""
        while len(content) < size:
            piece = self.socket.recv(size - len(content))
            assert piece, f"the connection ended after {content!r}"
            content += piece
        return content
