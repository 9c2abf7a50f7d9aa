"""Named consumers: read from the committed offset, then commit.

The name is that of a consumer group, so its lag is visible like that of others. Nothing is stored between two requests
except commits: without a commit the same messages are read again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from ottla.broker.interfaces.fetched import fetch, records_in
from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.broker.interfaces.partition_facts import bounds
from ottla.core.errors import UnknownTopicOrPartition
from ottla.core.security import AclOperation, ResourceType
from ottla.http.consumer_groups.offsets import GivenOffset, ReadOffset, checked, commit, committed_offsets, listed
from ottla.http.framework.endpoints import Endpoint, others
from ottla.http.framework.models import Message, RequestStruct, Struct, message_of
from ottla.http.framework.problems import BadRequest
from ottla.http.records.messages import decoding_of
from ottla.http.records.payloads import Wanted
from ottla.http.records.reading import MOST_BYTES

if TYPE_CHECKING:
    from ottla.broker.topics import TopicState
    from ottla.http.framework.endpoints import Call


class ConsumeQuery(RequestStruct, frozen=True, kw_only=True):
    topic: str
    max: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 100
    """Maximum number of messages."""
    wait_ms: Annotated[int, msgspec.Meta(ge=0, le=30_000)] = 0
    """How long to wait for the first message."""
    start: Literal["earliest", "latest"] = "earliest"
    """Where to start in partitions without a committed offset."""
    keys: Wanted = "auto"
    values: Wanted = "auto"


class Offsets(Struct, frozen=True, kw_only=True):
    offsets: list[ReadOffset]


class Consumed(Struct, frozen=True, kw_only=True):
    consumer: str
    topic: str
    messages: list[Message]
    commit: Offsets
    """POST this to …/commit after processing the messages."""


async def consume(call: Call) -> Consumed:
    name = call.path("consumer")
    query = call.query(ConsumeQuery)
    call.check(AclOperation.READ, ResourceType.TOPIC, query.topic)
    state = call.broker.topics.by_name.get(query.topic)
    if state is None:
        raise UnknownTopicOrPartition(f"no topic {query.topic!r}")
    positions = await _positions(call, state, await committed_offsets(call, name), query)
    messages = await _read(call, query, positions)
    places = {(query.topic, partition): offset for partition, offset in positions.items()}
    return Consumed(consumer=name, topic=query.topic, messages=messages, commit=Offsets(offsets=listed(places)))


async def _positions(
    call: Call, state: TopicState, committed: dict[tuple[str, int], int], query: ConsumeQuery
) -> dict[int, int]:
    positions = {}
    for at, (start, end) in sorted((await bounds(call.broker, state.partitions)).items()):
        default = start if query.start == "earliest" else end
        offset = committed.get((state.name, at.partition), default)
        # Skips offsets deleted by retention.
        positions[at.partition] = min(max(offset, start), end)
    return positions


async def _read(call: Call, query: ConsumeQuery, positions: dict[int, int]) -> list[Message]:
    """Read up to `max` messages, and advance the positions."""
    messages: list[Message] = []
    wait_ms = query.wait_ms
    decoding = await decoding_of(call, query.keys, query.values)
    while len(messages) < query.max:
        answer = await fetch(call, query.topic, positions, max_bytes=MOST_BYTES, max_wait_ms=wait_ms)
        wait_ms = 0
        found = len(messages)
        if decoding is not None:
            await decoding.refresh()
        for data in answer:
            raise_refusal(data.error_code)
            for piece in records_in(data, positions[data.partition_index]):
                taken = piece.records[: query.max - len(messages)]
                index = data.partition_index
                messages += [message_of(record, index, query.keys, query.values, decoding) for record in taken]
                is_whole = len(taken) == len(piece.records)
                if is_whole or taken:
                    positions[data.partition_index] = piece.next_offset if is_whole else taken[-1].offset + 1
                if len(messages) == query.max:
                    break
                await others()
        if len(messages) == found:
            break
    return messages


class Commit(RequestStruct, frozen=True, kw_only=True):
    offsets: tuple[GivenOffset, ...]


class Committed(Struct, frozen=True, kw_only=True):
    consumer: str
    offsets: list[ReadOffset]


async def commit_offsets(call: Call) -> Committed:
    name = call.path("consumer")
    body = await call.body(Commit)
    if not body.offsets:
        raise BadRequest("no offsets given")
    offsets = await checked(call.broker, body.offsets)
    await commit(call, name, offsets)
    return Committed(consumer=name, offsets=listed(offsets))


_CONSUMER: Final = "/v1/consumers/{consumer}"

ENDPOINTS: Final = (
    Endpoint(
        "GET",
        f"{_CONSUMER}/messages",
        consume,
        "Read from the consumer's committed offsets",
        query=ConsumeQuery,
        answer=Consumed,
    ),
    Endpoint(
        "POST",
        f"{_CONSUMER}/commit",
        commit_offsets,
        "Commit offsets of a consumer",
        body=Commit,
        answer=Committed,
    ),
)
