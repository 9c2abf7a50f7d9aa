"""One client connection to one shard: requests in, replies out, in order and with limits."""

from __future__ import annotations

import asyncio
from collections import Counter
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final, Protocol

from ottla.broker.interfaces.in_process_requests import Refused
from ottla.core.security import AclOperation, ResourceType
from ottla.dmqp.frame import Frame, FrameParser, Method, Status, TooLong, reply, status_of
from ottla.net.client_stream import ClientStream

if TYPE_CHECKING:
    from ottla.broker.interfaces.in_process_requests import LocalClient
    from ottla.broker.interfaces.protocol_servers import ShardStats
    from ottla.dmqp.shard import Replies, Shard

_METHODS: Final = frozenset(Method)
_UNKNOWN: Final = "unknown"
_OPERATIONS: Final[dict[int, AclOperation]] = {
    Method.PUSH: AclOperation.WRITE,
    Method.POP: AclOperation.READ,
    Method.PEEK_SEQUENCE_ID: AclOperation.READ,
}
_TOGETHER: Final = 64
"""This many consecutive requests of one kind are served together."""
_DROPPED_BYTES: Final = 8 << 20
"""This much is read and dropped after the last reply, so that the client can read it."""


class Service(Protocol):
    """The server's interface for its connections."""

    stats: ShardStats

    def opened(self, connection: ShardConnection) -> bool:
        """Whether to accept this connection."""

    def closed(self, connection: ShardConnection) -> None: ...

    def refused(self, connection: ShardConnection, reason: str) -> None:
        """Handle a connection that is closed for this reason."""

    def failed(self, connection: ShardConnection, error: BaseException) -> None:
        """Handle a bug; the connection is closed."""

    def holds(self, connection: ShardConnection, more: int) -> bool:
        """Count this many more held bytes for this client, or fewer; returns False if the total limit is exceeded."""


class ShardConnection(ClientStream[Frame, FrameParser], asyncio.Protocol):
    AHEAD_FRAMES = 256

    def __init__(self, service: Service, shard: Shard) -> None:
        super().__init__(FrameParser())
        self.shard = shard
        self.client: LocalClient | None = None
        """The client whose permissions are checked, if clients are authorized individually."""
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._service = service
        self._counted_bytes = 0
        self._waiting: Replies | None = None
        self._asked_ns = 0
        self._last_reply = b""
        """Sent after everything before it; the connection is closed then."""
        self._dropped_bytes = 0

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if not self._service.opened(self):
            self.abort()

    def data_received(self, data: bytes) -> None:
        self._moved += len(data)
        if self._is_over or self._is_finishing:
            self._drop(len(data))
            return
        try:
            frames = self._frames.feed(data)
        except TooLong as broken:
            self._service.refused(self, str(broken))
            self._last_reply = reply(Status.EMSGSIZE)
            self._service.stats.replied(Method.PUSH.name, Status.EMSGSIZE.name, 1, 0)
            self._is_finishing = True
            frames = broken.complete
        self._backlog += frames
        self._backlog_bytes += sum([len(frame.payload) for frame in frames])
        self._serve()

    def eof_received(self) -> bool:
        """Handle the end of the client's data. Earlier requests are still answered, if the client may be reading."""
        self._is_finishing = True
        return self._transport.can_write_eof() and self.is_busy

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._service.holds(self, -self._counted_bytes)
        self._service.closed(self)
        self.gone.set_result(None)

    def pause_writing(self) -> None:
        self._is_writing_paused = True

    def resume_writing(self) -> None:
        self._is_writing_paused = False
        self._serve()

    # Serving

    def _serve(self) -> None:
        """Serve as far as possible without waiting: one kind of request at a time, to keep their order."""
        while self._backlog and self._waiting is None and not self._is_writing_paused and not self._is_over:
            method = self._backlog[0].method
            run = self._backlog[:1]
            for frame in self._backlog[1:_TOGETHER]:
                if frame.method != method:
                    break
                run.append(frame)
            self._ask(method, run)
        if self._is_finishing and not self.is_busy:
            self._end()
        self._control_reading()
        self._count_held()

    def _ask(self, method: int, run: list[Frame]) -> None:
        self._asked_ns = perf_counter_ns()
        if self.client is not None and method in _OPERATIONS and not self._may(self.client, _OPERATIONS[method]):
            self._send([reply(Status.EACCES)] * len(run))
        elif method == Method.PUSH:
            self._wait_for(self.shard.push(run))
        elif method == Method.POP:
            self._wait_for(self.shard.pop(len(run)))
        elif method == Method.PEEK_SEQUENCE_ID:
            self._wait_for(self.shard.peek(len(run)))
        else:
            status = Status.EPROTO if method == Method.RESPONSE else Status.ENOSYS
            self._send([reply(status)] * len(run))

    def _may(self, client: LocalClient, operation: AclOperation) -> bool:
        try:
            client.check(operation, ResourceType.TOPIC, self.shard.log.topic)
        except Refused:
            return False
        return True

    def _wait_for(self, replies: Replies) -> None:
        self._waiting = replies
        replies.add_done_callback(self._answered)

    def _answered(self, replies: Replies) -> None:
        self._waiting = None
        self._moved += 1
        if (error := replies.exception()) is not None:
            self._service.failed(self, error)
            self.abort()
        elif not self._is_over:
            self._send(replies.result())
            self._serve()

    def _send(self, replies: list[bytes]) -> None:
        done = self._backlog[: len(replies)]
        self._count(done[0].method, replies)
        self._answered_first(len(replies), sum([len(frame.payload) for frame in done]))
        self._transport.write(b"".join(replies))

    def _count(self, method: int, replies: list[bytes]) -> None:
        elapsed_ns = perf_counter_ns() - self._asked_ns
        name = Method(method).name if method in _METHODS else _UNKNOWN
        for status, count in Counter(map(status_of, replies)).items():
            self._service.stats.replied(name, Status(status).name, count, elapsed_ns)

    def _end(self) -> None:
        if self._last_reply:
            self._transport.write(self._last_reply)
            self._last_reply = b""
            self._is_over = True
            if self._transport.can_write_eof():
                # If closed at once, data still sent by the client would reset the connection before it reads the reply.
                self._transport.write_eof()
                return
        self._is_over = True
        self._transport.close()

    def _drop(self, size: int) -> None:
        self._dropped_bytes += size
        if self._dropped_bytes > _DROPPED_BYTES:
            self.abort()

    def _count_held(self) -> None:
        if self._transport.is_closing():
            return
        held = self.held_bytes + self._unsent_bytes
        more, self._counted_bytes = held - self._counted_bytes, held
        if more and not self._service.holds(self, more):
            self.abort()

    # Called by the server

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return self._waiting is not None or bool(self._backlog)

    def is_late(self, now_s: float, timeout_s: float) -> bool:
        """Whether it has been idle or stalled for too long."""
        return self.quiet_s(now_s) > timeout_s and (self.is_stalled or not self.is_busy)

    def finish(self) -> None:
        """Answer the received requests, then close."""
        self._is_finishing = True
        if not self._is_over:
            self._serve()
