"""Writing messages: an atomic JSON body, or a stream of lines written as it arrives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from ottla.broker.administration import NewTopic
from ottla.broker.interfaces.in_process_requests import Refused
from ottla.core.errors import InvalidTimestamp, MessageTooLarge, UnknownTopicOrPartition
from ottla.core.security import CLUSTER_NAME, AclOperation, ResourceType
from ottla.http.framework.bodies import BodyRefused
from ottla.http.framework.endpoints import NDJSON, Endpoint, decode_json, others, problem_of_body, too_large
from ottla.http.framework.models import PartitionIndex, RequestStruct, Struct, TimestampMs
from ottla.http.framework.problems import BadRequest, Problem, problem_of
from ottla.http.records.partitioning import next_partition, partition_of
from ottla.http.records.payloads import Encoding, read
from ottla.http.resources.topics import no_such_partition
from ottla.records.encode import BatchBuilder
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from ottla.broker.topics import TopicState
    from ottla.http.framework.endpoints import Call

_PRODUCE_BY_NAME: Final = 12
_ALL: Final = -1
_TIMEOUT_MS: Final = 30_000
_TURN_MESSAGES: Final = 500
_STREAM_BATCH_BYTES: Final = 256 * 1024


class NewHeader(RequestStruct, frozen=True, kw_only=True):
    name: str
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    encoding: Encoding | None = None


class NewMessage(RequestStruct, frozen=True, kw_only=True):
    """A string is written as UTF-8, null as no key or value, anything else as JSON; an encoding overrides this."""

    key: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    headers: tuple[NewHeader, ...] | dict[str, str | None] = ()
    partition: PartitionIndex | None = None
    """Without it the key decides, as with Kafka's producers."""
    timestamp: TimestampMs | None = None
    """Without it, now."""
    key_encoding: Encoding | None = None
    value_encoding: Encoding | None = None


class NewMessages(RequestStruct, frozen=True, kw_only=True):
    messages: list[NewMessage]


class WrittenMessage(Struct, frozen=True, kw_only=True):
    partition: int
    offset: int


class WrittenSpan(Struct, frozen=True, kw_only=True):
    partition: int
    first_offset: int
    last_offset: int
    count: int


class Written(Struct, frozen=True, kw_only=True):
    topic: str
    written: int
    offsets: tuple[WrittenMessage, ...] = ()
    """The offset of each message, in request order; omitted after a stream."""
    partitions: list[WrittenSpan]


class ReadyMessage(Struct, frozen=True, kw_only=True):
    """A message in log format."""

    what: str
    """Its description in errors."""
    partition: int | None
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


async def write_messages(call: Call) -> Written:
    name = call.path("name")
    call.broker.check_topic_name(name)
    if call.request.headers.get("content-type", "").partition(";")[0].strip().lower() == NDJSON:
        return await _write_stream(call, name)
    body = await call.body(NewMessages)
    if not body.messages:
        raise BadRequest("the body has no messages")
    ready = []
    for number, message in enumerate(body.messages, 1):
        ready.append(_read(message, f"message {number}"))
        if number % _TURN_MESSAGES == 0:
            await others()
    return await write_all(call, name, ready)


async def write_all(call: Call, name: str, ready: list[ReadyMessage]) -> Written:
    """Write these messages; a missing topic is created only now, so that a rejected request creates nothing."""
    writer = _Writer(call, await _topic(call, name), keeps_offsets=True)
    for number, one in enumerate(ready, 1):
        writer.add(one)
        if number % _TURN_MESSAGES == 0:
            await others()
    await others()
    await writer.write()
    return writer.written()


async def _write_stream(call: Call, name: str) -> Written:
    writer: _Writer | None = None
    number = 0
    try:
        async for line in _lines(call):
            number += 1
            if line.strip():
                ready = _read(decode_json(line, NewMessage, f"line {number}"), f"line {number}")
                writer = writer or _Writer(call, await _topic(call, name))
                writer.add(ready)
                if writer.size >= _STREAM_BATCH_BYTES:
                    await writer.write()
    except Problem as problem:
        if writer is None:
            raise
        detail = problem.details.detail if "line" in problem.details.detail else f"line {number}: {problem}"
        written = await _save(writer)
        raise Problem(
            problem.status, detail, hint="The lines before it are written.", code=problem.details.code, written=written
        ) from None
    if writer is None:
        raise BadRequest("the body has no messages")
    await writer.write()
    return writer.written()


async def _save(writer: _Writer) -> int:
    """Write the lines before an invalid one; returns the total number of messages written."""
    await writer.write()
    return writer.count


async def _lines(call: Call) -> AsyncIterator[bytes]:
    limit = call.http_state.config.max_body_bytes
    rest = bytearray()
    with call.receive() as body:
        try:
            while (chunk := await body.read()) is not None:
                end, *more = chunk.split(b"\n")
                rest += end
                if more:
                    yield bytes(rest)
                    for line in more[:-1]:
                        yield line
                    rest = bytearray(more[-1])
                if len(rest) > limit:
                    raise too_large(limit)
                body.hold(len(rest))
        except BodyRefused as refused:
            raise problem_of_body(refused, limit) from None
    yield bytes(rest)


async def _topic(call: Call, name: str) -> TopicState:
    call.check(AclOperation.WRITE, ResourceType.TOPIC, name)
    state = call.broker.topics.by_name.get(name)
    if state is not None:
        return state
    if not call.broker.config.auto_create_topics:
        raise UnknownTopicOrPartition(f"no topic {name!r}")
    if not call.may(AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
        call.check(AclOperation.CREATE, ResourceType.TOPIC, name)
    return await call.broker.administration.create_topic(NewTopic(name), _TIMEOUT_MS)


class _Writer:
    """Collects messages into a batch per partition, and appends them."""

    def __init__(self, call: Call, state: TopicState, *, keeps_offsets: bool = False) -> None:
        self._call = call
        self._state = state
        self._keeps_offsets = keeps_offsets
        self._max_bytes = state.config.log.max_message_bytes
        self._without_key = next_partition(len(state.partitions))
        self._ready: dict[int, list[BatchBuilder]] = {}
        self._order: list[int] = []
        self._spans: dict[int, WrittenSpan] = {}
        self._offsets: dict[int, list[int]] = {}
        self.size = 0
        self.count = 0
        """The number of messages written."""

    def add(self, ready: ReadyMessage) -> None:
        partition = self._partition_of(ready)
        timestamp = self._timestamp_of(ready)
        fields = timestamp, ready.key, ready.value, ready.headers
        builders = self._ready.setdefault(partition, [])
        before = builders[-1].size if builders else 0
        if not builders or not builders[-1].append(*fields):
            builder = BatchBuilder(max_bytes=self._max_bytes)
            builder.append(*fields)
            if builder.size > self._max_bytes:
                detail = f"{ready.what} has {builder.size} bytes; topic {self._state.name} allows {self._max_bytes}"
                raise problem_of(MessageTooLarge(detail))
            builders.append(builder)
            before = 0
        self.size += builders[-1].size - before
        if self._keeps_offsets:
            self._order.append(partition)

    def _partition_of(self, ready: ReadyMessage) -> int:
        partitions = len(self._state.partitions)
        if ready.partition is None:
            if ready.key is None or partitions == 1:
                return self._without_key
            return partition_of(ready.key, partitions)
        if ready.partition >= partitions:
            refusal = no_such_partition(self._state, ready.partition)
            raise problem_of(UnknownTopicOrPartition(f"{ready.what}: {refusal}"))
        return ready.partition

    def _timestamp_of(self, ready: ReadyMessage) -> int:
        """Check the timestamp like the log, which would reject only the batch of that partition."""
        now_ms, config = self._call.broker.clock.now_ms(), self._state.config.log
        if ready.timestamp is None:
            return now_ms
        is_late = now_ms - ready.timestamp > config.message_timestamp_before_max_ms
        is_early = ready.timestamp - now_ms > config.message_timestamp_after_max_ms
        if config.message_timestamp_type == "CreateTime" and (is_late or is_early):
            raise problem_of(InvalidTimestamp(f"{ready.what}: the topic does not allow timestamp {ready.timestamp}"))
        return ready.timestamp

    async def write(self) -> None:
        ready, self._ready = self._ready, {}
        self.size = 0
        while ready:
            # A request has one batch per partition, so further batches are sent with the next request.
            now = {partition: builders.pop(0) for partition, builders in ready.items()}
            ready = {partition: builders for partition, builders in ready.items() if builders}
            await self._write(now)

    async def _write(self, builders: dict[int, BatchBuilder]) -> None:
        counts = {partition: builder.count for partition, builder in builders.items()}
        data = tuple(
            PartitionProduceData(index=partition, records=memoryview(builder.build()))
            for partition, builder in builders.items()
        )
        topic = TopicProduceData(name=self._state.name, partition_data=data)
        request = ProduceRequest(acks=_ALL, timeout_ms=_TIMEOUT_MS, topic_data=(topic,))
        answer = await self._call.ask(request, _PRODUCE_BY_NAME)
        refused: Refused | None = None
        for result in answer.responses[0].partition_responses:
            if result.error_code:
                refused = Refused(result.error_code, result.error_message)
            else:
                self._note(result.index, result.base_offset, counts[result.index])
        if refused is not None:
            raise problem_of(refused, written=self.count)

    def _note(self, partition: int, base_offset: int, count: int) -> None:
        self.count += count
        if self._keeps_offsets:
            self._offsets.setdefault(partition, []).extend(range(base_offset, base_offset + count))
        before = self._spans.get(partition)
        self._spans[partition] = WrittenSpan(
            partition=partition,
            first_offset=base_offset if before is None else before.first_offset,
            last_offset=base_offset + count - 1,
            count=count + (0 if before is None else before.count),
        )

    def written(self) -> Written:
        following = {partition: iter(known) for partition, known in self._offsets.items()}
        offsets = [WrittenMessage(partition=one, offset=next(following[one])) for one in self._order]
        spans = sorted(self._spans.values(), key=lambda span: span.partition)
        return Written(topic=self._state.name, written=self.count, offsets=tuple(offsets), partitions=spans)


def _read(message: NewMessage, what: str) -> ReadyMessage:
    try:
        return ReadyMessage(
            what=what,
            partition=message.partition,
            timestamp=message.timestamp,
            key=_bytes(message.key, message.key_encoding, "key"),
            value=_bytes(message.value, message.value_encoding, "value"),
            headers=_headers(message.headers),
        )
    except ValueError as wrong:
        raise BadRequest(f"{what}: {wrong}") from None


def _bytes(given: msgspec.Raw | msgspec.UnsetType, encoding: Encoding | None, what: str) -> bytes | None:
    try:
        return read(None if isinstance(given, msgspec.UnsetType) else given, encoding)
    except ValueError as wrong:
        raise ValueError(f"{what}: {wrong}") from None


def _headers(given: tuple[NewHeader, ...] | dict[str, str | None]) -> list[tuple[str, bytes | None]]:
    pairs: Iterable[tuple[str, bytes | None]]
    if isinstance(given, dict):
        pairs = [(name, None if value is None else value.encode()) for name, value in given.items()]
    else:
        pairs = [(one.name, _bytes(one.value, one.encoding, f"header {one.name}")) for one in given]
    return list(pairs)


ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/v1/topics/{name}/messages",
        write_messages,
        "Write messages: a JSON body, or a stream of lines as application/x-ndjson",
        body=NewMessages,
        answer=Written,
        takes=NDJSON,
    ),
)
