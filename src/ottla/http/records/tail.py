"""A topic as server-sent events.

A tail sleeps until something is appended. With a slow reader, or many tails, it polls less often; it
buffers nothing meanwhile, and if it is too far behind it skips to the end, and reports the number of skipped messages.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

import msgspec
from starlette.responses import Response, StreamingResponse

from ottla.broker.interfaces.fetched import fetch, records_in
from ottla.broker.interfaces.in_process_requests import Refused
from ottla.broker.interfaces.partition_facts import bounds
from ottla.core.errors import ApiError, ErrorCode
from ottla.http.framework.endpoints import Endpoint, others
from ottla.http.framework.models import PartitionIndex, Struct, message_of
from ottla.http.framework.problems import BadRequest, problem_of
from ottla.http.records.cursors import read_cursor, write_cursor
from ottla.http.records.messages import Selection, decoding_of
from ottla.http.records.reading import MOST_BYTES
from ottla.http.resources.topics import no_such_partition, topic_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ottla.broker.topics import TopicState
    from ottla.http.framework.endpoints import Call, HttpState
    from ottla.http.records.decoded import Decoding
    from ottla.wire.messages.fetch import PartitionData

EVENT_STREAM: Final = "text/event-stream"
_HEARTBEAT_MS: Final = 15_000
_HEARTBEAT: Final = b": still here\n\n"
_PAUSE_S: Final = 0.01
_PAUSE_PER_TAIL_S: Final = 0.001
"""The pause per tail, so that all tails together poll a thousand times a second."""


class TailQuery(Selection, frozen=True, kw_only=True):
    partition: PartitionIndex | None = None
    """Without it, all partitions."""
    start: Literal["latest", "earliest"] = "latest"
    """Where to start; Last-Event-ID takes precedence."""
    max_behind: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 10_000
    """Once it has caught up: skip to the end when it is more messages behind in a partition than this."""


class Skipped(Struct, frozen=True, kw_only=True):
    """The event `skipped`: these messages were not sent, because the reader is too slow or they are deleted."""

    partition: int
    from_offset: int
    to_offset: int
    count: int


async def tail(call: Call) -> Response:
    state = topic_of(call)
    query = call.query(TailQuery)
    following = _Tail(call, state, query, await _positions(call, state, query))
    following.decoding = await decoding_of(call, query.keys, query.values)
    if call.request.method == "HEAD":
        return Response(media_type=EVENT_STREAM)
    _list(call.http_state)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(following.events(), media_type=EVENT_STREAM, headers=headers)


class _Tail:
    def __init__(self, call: Call, state: TopicState, query: TailQuery, begin: _Begin) -> None:
        self._call = call
        self._state = state
        self._topic = state.name
        self._query = query
        self._filter = query.filter()
        self.decoding: Decoding | None = None
        self._positions = begin.positions
        self._caught_up = {index for index, offset in begin.positions.items() if offset >= begin.ends[index]}

    async def events(self) -> AsyncIterator[bytes]:
        # Sent at once, so that the client knows that it is connected.
        yield b"retry: 1000\n%b\n" % self._id()
        try:
            while True:
                is_quiet = True
                async for chunk in self._look():
                    is_quiet = False
                    yield chunk
                if is_quiet:
                    yield _HEARTBEAT
                await asyncio.sleep(max(_PAUSE_S, _PAUSE_PER_TAIL_S * len(self._call.http_state.tails)))
        except ApiError as refused:
            yield _event("end", problem_of(refused).details)

    async def _look(self) -> AsyncIterator[bytes]:
        """The records appended since the last call; waits for some."""
        answer = await fetch(self._call, self._topic, self._positions, max_bytes=MOST_BYTES, max_wait_ms=_HEARTBEAT_MS)
        if self.decoding is not None:
            await self.decoding.refresh()
        for data in answer:
            skipped = await self._skip(data)
            if skipped is not None:
                yield self._id() + _event("skipped", skipped)
                continue
            async for chunk in self._messages(data):
                yield chunk

    async def _skip(self, data: PartitionData) -> Skipped | None:
        index = data.partition_index
        position = self._positions[index]
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            [there] = (await bounds(self._call.broker, [self._state.partitions[index]])).values()
            to_offset = there.start
        elif data.error_code:
            raise Refused(data.error_code)
        else:
            end = data.last_stable_offset
            if end - position <= self._query.max_behind or index not in self._caught_up:
                return None
            to_offset = end
        self._positions[index] = to_offset
        count = max(0, to_offset - position)
        self._call.http_state.stats.skipped_messages += count
        return Skipped(partition=index, from_offset=position, to_offset=to_offset, count=count)

    async def _messages(self, data: PartitionData) -> AsyncIterator[bytes]:
        index = data.partition_index
        for piece in records_in(data, self._positions[index]):
            events = [
                _event("message", message_of(record, index, self._query.keys, self._query.values, self.decoding))
                for record in piece.records
                if self._filter.takes_all or self._filter.matches(record)
            ]
            self._positions[index] = piece.next_offset
            if events:
                # The id is sent with the last record, since it is the resume position after all of them.
                events.insert(-1, self._id())
                yield b"".join(events)
            await others()
        if self._positions[index] >= data.last_stable_offset:
            self._caught_up.add(index)

    def _id(self) -> bytes:
        """The resume position after a lost connection."""
        return b"id: %b\n" % write_cursor(self._positions).encode()


class _Begin(NamedTuple):
    positions: dict[int, int]
    ends: dict[int, int]


async def _positions(call: Call, state: TopicState, query: TailQuery) -> _Begin:
    last_event_id = call.request.headers.get("last-event-id")
    if last_event_id is not None:
        try:
            known = read_cursor(last_event_id)
        except ValueError as wrong:
            raise BadRequest(f"Last-Event-ID: {wrong}") from None
        if max(known) >= len(state.partitions):
            raise no_such_partition(state, max(known))
        there = await bounds(call.broker, [state.partitions[index] for index in known], is_stable=True)
        return _Begin(known, {at.partition: each.end for at, each in there.items()})
    if query.partition is not None and query.partition >= len(state.partitions):
        raise no_such_partition(state, query.partition)
    wanted = state.partitions if query.partition is None else [state.partitions[query.partition]]
    there = await bounds(call.broker, wanted, is_stable=True)
    starts = {at.partition: each.start for at, each in there.items()}
    ends = {at.partition: each.end for at, each in there.items()}
    return _Begin(starts if query.start == "earliest" else dict(ends), ends)


def _event(name: str, data: msgspec.Struct) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(data))


def _list(http_state: HttpState) -> None:
    """Register the task of this request, so that stopping the broker can end it."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a handler runs in one
    http_state.tails.add(task)
    task.add_done_callback(http_state.tails.discard)


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/v1/topics/{name}/tail",
        tail,
        "New messages, as server-sent events",
        query=TailQuery,
        streams=EVENT_STREAM,
    ),
)
