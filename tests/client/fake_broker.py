"""A broker with scripted responses, and some servers that are not brokers."""

from __future__ import annotations

import asyncio
import struct
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from ottla.wire.apis import API_VERSIONS, APIS
from ottla.wire.codec import decode_request, encode_response
from ottla.wire.header import read_request_header
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from ottla.wire.declare import Request, Response

Answer: TypeAlias = "Response | bytes | None"
"""A response, raw bytes to send instead, or None."""
Handler: TypeAlias = "Callable[[Any], Answer | Awaitable[Answer]]"

ALL_VERSIONS = {key: (api.first, api.last) for key, api in APIS.items()}


class HangUp(Exception):
    """Raised by a handler: close the connection instead of answering."""


class FakeBroker:
    """Answers requests with `handlers`, by request type, and Metadata from `topics` and `brokers`."""

    def __init__(
        self,
        handlers: Mapping[type[Request], Handler] | None = None,
        versions: Mapping[int, tuple[int, int]] = ALL_VERSIONS,
        node_id: int = 0,
    ) -> None:
        self.node_id = node_id
        self.versions = dict(versions)
        self.handlers: dict[type[Request], Handler] = {MetadataRequest: self.metadata, **(handlers or {})}
        self.asked: list[Request] = []
        self.asked_versions: list[tuple[str, int]] = []
        self.client_ids: set[str | None] = set()
        self.connections = 0
        self._news = asyncio.Event()
        self.brokers: list[FakeBroker] = [self]
        self.topics: dict[str, MetadataResponseTopic] = {}
        self.host = "127.0.0.1"
        self.port = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    async def until_asked(self, request: type[Request], times: int = 1) -> None:
        while self.count(request) < times:
            self._news.clear()
            await self._news.wait()

    def count(self, request: type[Request]) -> int:
        return sum(isinstance(each, request) for each in self.asked)

    async def start(self, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", port: int = 0) -> None:
        self.host = host
        self._server = await asyncio.start_server(self._serve, host, port, ssl=tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Behave like a dying broker: close all connections and accept no more."""
        assert self._server is not None
        self._server.close()
        self.cut_connections()
        await self._server.wait_closed()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut_connections(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    def metadata(self, request: MetadataRequest) -> MetadataResponse:
        names = list(self.topics) if request.topics is None else [topic.name or "" for topic in request.topics]
        return MetadataResponse(
            brokers=tuple(
                MetadataResponseBroker(node_id=each.node_id, host=each.host, port=each.port) for each in self.brokers
            ),
            cluster_id="fake",
            controller_id=self.brokers[0].node_id,
            topics=tuple(self.topics.get(name) or topic(name, error_code=3, leaders=()) for name in names),
        )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        self._tasks.append(_this_task())
        with suppress(asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError, HangUp):
            while True:
                [size] = struct.unpack(">i", await reader.readexactly(4))
                writer.write(await self._answer(memoryview(bytearray(await reader.readexactly(size)))))
                await writer.drain()
        self._writers.discard(writer)
        writer.close()

    async def _answer(self, frame: memoryview) -> bytes:
        header = read_request_header(frame)
        request = decode_request(header, frame)
        self.asked.append(request)
        self._news.set()
        self.asked_versions.append((header.api.name, header.version))
        self.client_ids.add(header.client_id)
        if isinstance(request, ApiVersionsRequest) and ApiVersionsRequest not in self.handlers:
            return self._greet(header)
        answer = self.handlers[type(request)](request)
        if asyncio.iscoroutine(answer):
            answer = await answer
        if answer is None or isinstance(answer, bytes):
            return answer or b""
        return b"".join(map(bytes, encode_response(header, answer)))

    def _greet(self, header: Any) -> bytes:
        table = tuple(
            ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in self.versions.items()
        )
        if header.version <= self.versions[API_VERSIONS.key][1]:
            return b"".join(map(bytes, encode_response(header, ApiVersionsResponse(error_code=0, api_keys=table))))
        return b"".join(
            map(bytes, encode_response(header, ApiVersionsResponse(error_code=35, api_keys=table), version=0))
        )


def topic(
    name: str, error_code: int = 0, leaders: tuple[int, ...] = (0,), epoch: int = 0, topic_id: bytes = b"t" * 16
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=error_code,
        name=name,
        topic_id=topic_id,
        partitions=tuple(
            MetadataResponsePartition(
                error_code=0 if leader >= 0 else 5,
                partition_index=index,
                leader_id=leader,
                leader_epoch=epoch,
                replica_nodes=(0,),
                isr_nodes=(0,),
            )
            for index, leader in enumerate(leaders)
        ),
    )


@asynccontextmanager
async def serving(*brokers: FakeBroker, tls: ssl.SSLContext | None = None) -> AsyncIterator[None]:
    for broker in brokers:
        await broker.start(tls)
        broker.brokers = list(brokers)
    try:
        yield
    finally:
        for broker in brokers:
            await broker.stop()


@asynccontextmanager
async def stranger(
    greeting: bytes = b"", *, answers: bytes | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[str]:
    """The address of a server that sends bytes at once or after input and then closes, or never sends anything."""
    over = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(_this_task())
        with suppress(ConnectionError):
            writer.write(greeting)
            if answers is None:
                await over.wait()
            else:
                await reader.read(1)
                writer.write(answers)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(meet, host, 0)
    try:
        yield f"{host}:{server.sockets[0].getsockname()[1]}"
    finally:
        over.set()
        server.close()
        await server.wait_closed()
        await asyncio.gather(*tasks)


def _this_task() -> asyncio.Task[None]:
    task = asyncio.current_task()
    assert task is not None
    return task
