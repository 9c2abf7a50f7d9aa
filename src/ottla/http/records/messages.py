"""Reading messages: pages of JSON, or a stream of lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from starlette.responses import StreamingResponse

from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.broker.interfaces.partition_facts import bounds
from ottla.core.errors import OffsetOutOfRange
from ottla.http.framework.endpoints import NDJSON, Endpoint
from ottla.http.framework.models import (
    Message,
    OffsetNumber,
    PartitionIndex,
    RequestStruct,
    Struct,
    TimestampMs,
    message_of,
)
from ottla.http.framework.problems import BadRequest
from ottla.http.records.cursors import read_cursor, write_cursor
from ottla.http.records.filters import Filter
from ottla.http.records.payloads import Wanted
from ottla.http.records.reading import read_on
from ottla.http.resources.topics import no_such_partition, topic_of
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.responses import Response

    from ottla.broker.interfaces.partition_facts import Bounds
    from ottla.broker.topics import TopicState
    from ottla.core.ids import TopicPartition
    from ottla.http.framework.endpoints import Call
    from ottla.http.records.decoded import Decoding
    from ottla.records.reader import Record

_DEFAULT_LIMIT: Final = 100
_MOST_MESSAGES: Final = 10_000
_MOST_SCANNED: Final = 200_000
"""A search over more than this returns its results so far, and a cursor to continue."""
_PAGE_BYTES: Final = 4 << 20
_CHUNK_BYTES: Final = 32 * 1024
_NO_OFFSET: Final = -1


class Selection(RequestStruct, frozen=True, kw_only=True):
    """Filters and encodings."""

    key: str | None = None
    """Only messages with this key."""
    contains: str | None = None
    """Only messages whose value contains this text."""
    header: tuple[str, ...] = ()
    """Only messages with this header, as `name` or `name:value`; may be repeated."""
    path: str | None = None
    """Only messages with a JSON value that has this path, such as `$.user.tags[0]`."""
    equals: str | None = None
    """Only messages with this value at the path."""
    keys: Wanted = "auto"
    """The encoding of keys."""
    values: Wanted = "auto"
    """The encoding of values."""

    def filter(self) -> Filter:
        try:
            return Filter(key=self.key, contains=self.contains, headers=self.header, path=self.path, equals=self.equals)
        except ValueError as wrong:
            raise BadRequest(f"query: {wrong}") from None


class MessagesQuery(Selection, frozen=True, kw_only=True):
    partition: PartitionIndex | None = None
    """Without it all partitions are read, one after the other."""
    offset: OffsetNumber | None = None
    """Start at this offset."""
    timestamp: TimestampMs | None = None
    """Start at the first message at or after this time."""
    last: Annotated[int, msgspec.Meta(ge=1, le=_MOST_MESSAGES)] | None = None
    """The newest messages, this many per partition."""
    cursor: str | None = None
    """Continue from a previous response: its `next`."""
    limit: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Maximum number of messages: default 100, at most 10,000; no limit for a stream."""


class MessagePage(Struct, frozen=True, kw_only=True):
    topic: str
    messages: list[Message]
    next: str
    """The cursor to continue from."""
    is_end: bool
    """Whether the end was reached."""
    scanned: int
    """The number of scanned messages."""


class Span(Struct, frozen=True, kw_only=True):
    """The range to read of a partition."""

    partition: int
    start: int
    end: int


async def read_messages(call: Call) -> MessagePage | Response:
    state = topic_of(call)
    query = call.query(MessagesQuery)
    spans = await _spans(call, state, query)
    search = _Search(call, state.name, query, spans)
    search.decoding = await decoding_of(call, query.keys, query.values)
    if NDJSON in call.request.headers.get("accept", ""):
        return StreamingResponse(search.lines(), media_type=NDJSON)
    return await search.page()


async def decoding_of(call: Call, keys: Wanted, values: Wanted) -> Decoding | None:
    """The schema decoder; None unless one was requested."""
    if "schema" not in (keys, values):
        return None
    from ottla.http.records.decoded import Decoding  # rarely needed

    decoding = Decoding(call)
    await decoding.refresh()
    return decoding


async def _spans(call: Call, state: TopicState, query: MessagesQuery) -> list[Span]:
    given = [name for name in ("offset", "timestamp", "last", "cursor") if getattr(query, name) is not None]
    if len(given) > 1:
        raise BadRequest(f"query: {' and '.join(given)} are mutually exclusive; give one of them")
    if query.cursor is not None:
        return await _spans_of_cursor(call, state, query.cursor)
    if query.partition is not None and query.partition >= len(state.partitions):
        raise no_such_partition(state, query.partition)
    indexes = range(len(state.partitions)) if query.partition is None else [query.partition]
    if query.offset is not None and len(indexes) > 1:
        raise BadRequest("query: an offset needs a partition", hint="Add partition=0, say.")
    known = await bounds(call.broker, [state.partitions[index] for index in indexes], is_stable=True)
    return [await _span(call, at, there, query) for at, there in sorted(known.items())]


async def _spans_of_cursor(call: Call, state: TopicState, cursor: str) -> list[Span]:
    try:
        positions = read_cursor(cursor)
    except ValueError as wrong:
        raise BadRequest(f"query: {wrong}") from None
    if max(positions) >= len(state.partitions):
        raise no_such_partition(state, max(positions))
    known = await bounds(call.broker, [state.partitions[index] for index in positions], is_stable=True)
    spans = []
    for at, there in sorted(known.items()):
        # Skips offsets deleted by retention meanwhile.
        start = max(positions[at.partition], there.start)
        spans.append(Span(partition=at.partition, start=start, end=max(start, there.end)))
    return spans


async def _span(call: Call, at: TopicPartition, there: Bounds, query: MessagesQuery) -> Span:
    start, end = there
    if query.offset is not None:
        if not start <= query.offset <= end:
            raise OffsetOutOfRange(f"{at} has offsets {start} to {end}, not {query.offset}")
        start = query.offset
    elif query.timestamp is not None:
        start = await offset_at(call, at, query.timestamp, end)
    elif query.last is not None:
        start = max(start, end - query.last)
    return Span(partition=at.partition, start=start, end=max(start, end))


async def offset_at(call: Call, at: TopicPartition, timestamp: int, end: int) -> int:
    """The first offset at or after the time; the end of the partition if there is none."""
    wanted = ListOffsetsPartition(partition_index=at.partition, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=at.topic, partitions=(wanted,)),))
    answer = await call.ask(request)
    [found] = answer.topics[0].partitions
    raise_refusal(found.error_code)
    offset: int = found.offset
    return end if offset == _NO_OFFSET else offset


class _Search:
    """Reads partitions one after the other, and tracks the position."""

    def __init__(self, call: Call, topic: str, query: MessagesQuery, spans: list[Span]) -> None:
        self._call = call
        self._topic = topic
        self._query = query
        self._spans = spans
        self._filter = query.filter()
        self._positions = {span.partition: span.start for span in spans}
        self._scanned = 0
        self.decoding: Decoding | None = None

    async def page(self) -> MessagePage:
        limit = self._query.limit or self._query.last or _DEFAULT_LIMIT
        if limit > _MOST_MESSAGES:
            hint = "Follow `next`, or accept application/x-ndjson to get all of them in one stream."
            raise BadRequest(f"query: limit must be at most {_MOST_MESSAGES}", hint=hint)
        messages: list[Message] = []
        size = 0
        async for partition, record in self._found():
            messages.append(self._shown(partition, record))
            size += len(record.key or b"") + len(record.value or b"")
            if len(messages) == limit or size >= _PAGE_BYTES:
                break
        return MessagePage(
            topic=self._topic,
            messages=messages,
            next=write_cursor(self._positions),
            is_end=all(self._positions[span.partition] >= span.end for span in self._spans),
            scanned=self._scanned,
        )

    async def lines(self) -> AsyncIterator[bytes]:
        left = self._query.limit
        encode = msgspec.json.encode
        lines = bytearray()
        async for partition, record in self._found(is_bounded=False):
            lines += encode(self._shown(partition, record))
            lines += b"\n"
            if len(lines) >= _CHUNK_BYTES:
                yield bytes(lines)
                lines.clear()
            if left is not None:
                left -= 1
                if left == 0:
                    break
        yield bytes(lines)

    def _shown(self, partition: int, record: Record) -> Message:
        return message_of(record, partition, self._query.keys, self._query.values, self.decoding)

    async def _found(self, *, is_bounded: bool = True) -> AsyncIterator[tuple[int, Record]]:
        for span in self._spans:
            async for piece in read_on(self._call, self._topic, span.partition, span.start, span.end):
                for record in piece.records:
                    self._positions[span.partition] = record.offset + 1
                    self._scanned += 1
                    if self._filter.takes_all or self._filter.matches(record):
                        yield span.partition, record
                self._positions[span.partition] = piece.next_offset
                if is_bounded and self._scanned >= _MOST_SCANNED:
                    return


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/v1/topics/{name}/messages",
        read_messages,
        "Read messages: a page, or with `Accept: application/x-ndjson` a stream of lines",
        query=MessagesQuery,
        answer=MessagePage,
        streams=NDJSON,
    ),
)
