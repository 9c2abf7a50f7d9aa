"""Dispatches frames to handlers, and encodes their responses."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from importlib import import_module
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from ottla.broker.configs.definitions import broker_definitions
from ottla.broker.metrics import ApiStats
from ottla.broker.requests.api_table import SERVED
from ottla.broker.requests.context import Context
from ottla.core.errors import ErrorCode, ProtocolError
from ottla.wire.apis import API_VERSIONS, APIS, FETCH, PRODUCE, request_type
from ottla.wire.codec import decode_request, encode_response
from ottla.wire.declare import Response
from ottla.wire.header import RequestHeader, read_request_header
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from ottla.broker.broker import Broker
    from ottla.broker.requests.answers import Answer, Handler
    from ottla.broker.requests.served_api import ServedApi
    from ottla.net.connection import Connection
    from ottla.wire.apis import Api
    from ottla.wire.declare import Sendable


_LOADED_LATER: Final = (
    "ottla.storage.recovery",
    "ottla.storage.retention",
    "ottla.storage.key_version",
    "ottla.broker.coordinators.groups",
    "ottla.broker.upkeep.compactor",
    "ottla.broker.share.service",
    "ottla.broker.coordinators.transactions",
    "ottla.share.settings",
)
"""Modules that handlers and the broker import on first use."""


def served_versions() -> tuple[ApiVersion, ...]:
    return tuple(
        ApiVersion(api_key=key, min_version=served.api.advertised_from, max_version=served.api.last)
        for key, served in sorted(SERVED.items())
    )


class _Served:
    """An API in use: its handler and its metrics."""

    __slots__ = ("handler", "stats")

    def __init__(self, api: Api, handler: Handler) -> None:
        self.handler = handler
        self.stats = ApiStats(api)


class Dispatcher:
    """Converts a request frame to a response frame."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._most_bytes = broker.settings.net.max_frame_bytes_without_records
        self._served: dict[int, _Served] = {}
        self._handlers: dict[int, Handler] = {}
        self.around: Callable[[Api, Handler], Handler] | None = None
        """An additional wrapper of all handlers; call `reload_handlers` after setting it."""

    @property
    def stats(self) -> list[ApiStats]:
        return [served.stats for served in self._served.values()]

    def refused(self, api: Api, code: int) -> None:
        """Count an error that is not found by searching the response."""
        if (served := self._served.get(api.key)) is not None:
            served.stats.refused(code)

    def answer(
        self, connection: Connection, frame: memoryview
    ) -> list[Sendable] | Awaitable[list[Sendable] | None] | None:
        began_ns = perf_counter_ns()
        header = read_request_header(frame)
        api = header.api
        if not api.first <= header.version <= api.last:
            return _refuse_version(header)
        served = self._served.get(api.key) or self._serve(api)
        stats = served.stats
        size = len(frame)
        stats.bytes_in += size
        if size > self._most_bytes and api is not PRODUCE:
            raise ProtocolError(
                f"{api} request of {size} bytes exceeds net.max_frame_bytes_without_records ({self._most_bytes})"
            )
        request = decode_request(header, frame)
        response = served.handler(self._broker, request, Context(header, connection))
        buffers = None
        if isinstance(response, Response):
            buffers = encode_response(header, response)
            stats.bytes_out += len(buffers[0])
            if stats.finds_errors:
                stats.bytes_out += sum(map(len, buffers[1:]))
                stats.note_errors(response)
        elif response is not None:
            return _later(header, response, stats, began_ns)
        # Inlined `Histogram.add`: every produce request passes here.
        elapsed_ns = perf_counter_ns() - began_ns
        stats.by_bits[elapsed_ns.bit_length()] += 1
        stats.total_ns += elapsed_ns
        return buffers

    def closed(self, connection: Connection) -> None:
        self._broker.connection_closed(connection)

    async def load_all(self) -> None:
        """Import modules that no request has needed yet: later there may be too few file descriptors to read them.

        One by one, so that requests do not wait.
        """
        for key, served in SERVED.items():
            if key not in self._served:
                self._serve(served.api)
            request_type(served.api)
            await asyncio.sleep(0)
        for module in _LOADED_LATER:
            import_module(module)
            await asyncio.sleep(0)
        broker_definitions()

    def _serve(self, api: Api) -> _Served:
        served = self._served[api.key] = _Served(api, self.handler(api))
        if api in (PRODUCE, FETCH):
            self._use_fast_path()
        return served

    def _use_fast_path(self) -> None:
        """Use the fast path for APIs whose handler has no wrappers. It needs a C compiler.

        Cluster nodes do not use it: all of their partitions have a leader and followers.
        """
        stats = [self._stats_without_wrapper(api) for api in (PRODUCE, FETCH)]
        fast_path = None
        if any(stats) and self._broker.cluster is None:
            with suppress(ImportError):
                from ottla.broker.fast_path.path import FastPath

                fast_path = FastPath(self._broker, *stats)
        self._broker.listener.serve_in_place(fast_path)

    def _stats_without_wrapper(self, api: Api) -> ApiStats | None:
        served = self._served.get(api.key)
        if served is None or served.handler is not SERVED[api.key].load_handler():
            return None
        return served.stats

    def handler(self, api: Api) -> Handler:
        """The handler of this API for all protocols."""
        found = self._handlers.get(api.key)
        if found is None:
            broker = self._broker
            found = broker.security.around(_served(api), self.unguarded(api))
            found = found if broker.tracing is None else broker.tracing.traced(api, found)
            self._handlers[api.key] = found = found if self.around is None else self.around(api, found)
        return found

    def unguarded(self, api: Api) -> Handler:
        """The handler without ACLs, quotas and audit, for internal requests of the broker."""
        served = _served(api)
        found = served.load_handler()
        if self._broker.startup_wait is not None and served.waits_for_cluster:
            found = self._broker.startup_wait.around(found)
        if self._broker.replication is not None and served.forward is not None:
            from ottla.broker.peers.forwarding import forwarding

            found = forwarding(served.forward(), found)
        return found

    def reload_handlers(self) -> None:
        """Reload the handlers after their wrappers have changed."""
        self._handlers.clear()
        for key, served in self._served.items():
            served.handler = self.handler(APIS[key])
        self._use_fast_path()


async def _later(
    header: RequestHeader, response: Coroutine[object, object, Answer], stats: ApiStats, began_ns: int
) -> list[Sendable] | None:
    answer = await response
    buffers = None
    if answer is not None:
        buffers = encode_response(header, answer)
        stats.bytes_out += sum(map(len, buffers))
        if stats.finds_errors:
            await stats.note_many_errors(answer)
    stats.add(perf_counter_ns() - began_ns)
    return buffers


def _served(api: Api) -> ServedApi:
    served = SERVED.get(api.key)
    if served is None:
        raise ProtocolError(f"{api} is not supported")
    return served


def _refuse_version(header: RequestHeader) -> list[Sendable]:
    """A newer client gets the supported versions (KIP-511); others must request them first."""
    if header.api.key != API_VERSIONS.key:
        raise ProtocolError(f"{header.api} version {header.version} is not supported")
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=served_versions())
    return encode_response(header, refusal, version=0)
