"""The compiled path of incremental fetches (KIP-227): the same responses and sessions as without it."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.broker.requests import fetch_sessions
from ottla.wire.apis import FETCH
from ottla.wire.codec import decode_response, encode_request
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ottla.broker.topics import TopicState

from .fast_sides import BY_ID_SINCE, FIRST, Consumer, Side, numbers, usual
from .test_fast_fetch import append

pytest.importorskip("ottla.broker.fast_path.path", reason="needs a C compiler")

SESSION_SINCE = 7
PARTITIONS = 3
"""Of each of two topics."""


class SessionStep(NamedTuple):
    """An incremental fetch: it names the partitions that were read, and these."""

    named: list[tuple[int, int, int]]
    """Topic, partition, offset before the end."""
    forgotten: list[tuple[int, int]] = []  # noqa: RUF012 - never changed
    wrong_epoch: int = 0
    isolation_level: int = 0
    max_bytes: int = 50 << 20
    change: tuple[int, int] | None = None


class Reader:
    """A consumer with a session, as Java's: it names the partitions whose offset has changed."""

    def __init__(self, side: Side, topics: Sequence[TopicState], version: int) -> None:
        self.side, self.topics, self.version = side, topics, version
        self.consumer = Consumer(side)
        self.session_id, self.epoch = 0, 0
        self.named: dict[tuple[int, int], int] = {
            (topic, partition): 0 for topic in range(len(topics)) for partition in range(PARTITIONS)
        }

    def request(self, step: SessionStep, **fields: int) -> FetchRequest:
        named = dict(self.named)
        for topic, partition, back in step.named:
            named[topic, partition] = max(self.topics[topic].partitions[partition].log.next_offset - back, 0)
        by_topic: dict[int, list[FetchPartition]] = {}
        for (topic, partition), offset in named.items():
            data = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
            by_topic.setdefault(topic, []).append(data)
        return FetchRequest(
            **({"max_wait_ms": 0, "min_bytes": 1} | fields),  # type: ignore[arg-type]
            isolation_level=step.isolation_level,
            max_bytes=step.max_bytes,
            session_id=self.session_id,
            session_epoch=self.epoch + step.wrong_epoch,
            topics=tuple(FetchTopic(**self._id(topic), partitions=tuple(data)) for topic, data in by_topic.items()),
            forgotten_topics_data=tuple(
                ForgottenTopic(**self._id(topic), partitions=(partition,)) for topic, partition in step.forgotten
            ),
        )

    def _id(self, topic: int) -> dict[str, object]:
        state = self.topics[topic]
        return {"topic_id": state.raw_id} if self.version >= BY_ID_SINCE else {"topic": state.name}

    async def fetch(self, step: SessionStep, **fields: int) -> bytes:
        self.send(step, **fields)
        # A damaged request may be another one.
        return await self.answer() if step.change is None else await self.consumer.turn()

    def send(self, step: SessionStep, **fields: int) -> None:
        self.asked = self.request(step, **fields)
        made = bytearray(b"".join(encode_request(self.asked, self.version, 5, "client")))
        if step.change is not None:
            made[8 + step.change[0] % (len(made) - 8)] ^= step.change[1]  # behind the API and its version
        self.consumer.send(bytes(made))

    async def answer(self) -> bytes:
        sent = await self.consumer.turn()
        response = decode_response(self.asked, self.version, 5, memoryview(sent)[4:])
        if response.error_code == 0:
            self.epoch = max(self.epoch + 1, 1)
            self.session_id = self.session_id or response.session_id
            self.named = {}
            for topic in response.responses:
                for data in topic.partitions:
                    self._read(topic.topic, topic.topic_id, data.partition_index, bool(data.records))
        return sent

    def _read(self, name: str, topic_id: bytes, partition: int, has_records: bool) -> None:  # noqa: FBT001
        [number] = [at for at, one in enumerate(self.topics) if name == one.name or topic_id == one.raw_id]
        if has_records:
            self.named[number, partition] = self.topics[number].partitions[partition].log.next_offset

    def state(self) -> object:
        session = self.side.broker.fetch_sessions._sessions.get(self.session_id)
        if session is None:
            return None
        return session.epoch, list(session.wanted.items()), session._known


@contextmanager
def same_ids() -> Iterator[None]:
    """The sessions of both sides have the same ids."""
    numbers = count(1)
    with patch.object(fetch_sessions, "os", SimpleNamespace(urandom=lambda size: next(numbers).to_bytes(size))):
        yield


places = st.tuples(st.integers(0, 1), st.integers(0, PARTITIONS - 1))
usual_steps = st.just(SessionStep([]))
any_steps = st.builds(
    SessionStep,
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, PARTITIONS - 1), st.integers(-1, 3)), max_size=2),
    st.lists(places, max_size=1),
    st.sampled_from((0, 0, 0, 0, 1)),
    st.sampled_from((0, 1)),
    st.sampled_from((50 << 20, 50 << 20, 300)),
    st.none() | st.none() | st.none() | st.tuples(st.integers(0, 200), st.integers(1, 255)),
)
appends = st.tuples(places, st.one_of(usual, usual, usual, st.just(b"roll"), st.just(b"transaction")))


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(st.one_of(appends, appends, usual_steps, usual_steps, any_steps), min_size=4, max_size=25),
    version=st.integers(SESSION_SINCE, FETCH.last),
)
def test_any_incremental_fetches_get_the_same_responses_and_leave_the_same_sessions(
    sides: tuple[Side, Side], steps: list[SessionStep | tuple[tuple[int, int], bytes]], version: int
) -> None:
    names = [f"session-{next(numbers)}-{name}" for name in "ab"]

    async def run(side: Side) -> list[object]:
        topics = [side.create(name, PARTITIONS) for name in names]
        reader = Reader(side, topics, version)
        seen: list[object] = [await reader.fetch(SessionStep([]))]
        for step in steps:
            if isinstance(step, SessionStep):
                seen += [await reader.fetch(step), reader.state(), reader.consumer.wire.is_closed]
                if reader.consumer.wire.is_closed:
                    break
            else:
                append(topics[step[0][0]].partitions[step[0][1]], step[1])
        reader.consumer.connection.connection_lost(None)
        for state in topics:
            side.broker.topics.delete(state)
        return seen

    seen = []
    for side in sides:
        side.broker.fetch_sessions._sessions.clear()
        with same_ids():
            seen.append(asyncio.run(run(side)))
    fast, plain = seen
    assert fast == plain


@pytest.mark.parametrize("version", [SESSION_SINCE, 11, 12, BY_ID_SINCE, FETCH.last])
def test_incremental_fetches_are_answered_in_place(fast: Side, version: int) -> None:
    async def run() -> None:
        topics = [fast.create(f"in-place-{version}-{name}", PARTITIONS) for name in "ab"]
        reader = Reader(fast, topics, version)
        await reader.fetch(SessionStep([]))
        for number in range(6):
            append(topics[number % 2].partitions[number % PARTITIONS], FIRST)
            before = fast.counting.served
            sent = await reader.fetch(SessionStep([]))
            assert FIRST[61:] in sent
            assert fast.counting.served > before

    asyncio.run(run())


@pytest.mark.parametrize("ending", ["append", "transaction", "timeout"])
def test_an_incremental_fetch_that_waits_is_answered_as_by_the_handler(sides: tuple[Side, Side], ending: str) -> None:
    """After a transaction has begun the handler answers, with the session of before."""
    name = f"session-waits-{next(numbers)}"

    async def run(side: Side) -> list[object]:
        topics = [side.create(f"{name}-{each}", PARTITIONS) for each in "ab"]
        reader = Reader(side, topics, 12)
        await reader.fetch(SessionStep([]))
        await reader.fetch(SessionStep([]))
        seen: list[object] = []
        for _ in range(2):
            reader.send(SessionStep([]), max_wait_ms=1 if ending == "timeout" else 60_000)
            seen.append(await reader.consumer.turn())
            if ending == "timeout":
                await asyncio.sleep(0.01)
            else:
                append(topics[1].partitions[2], b"transaction" if ending == "transaction" else FIRST)
                append(topics[1].partitions[1], FIRST)
            seen += [await reader.answer(), reader.state()]
        assert not reader.consumer.connection.is_busy
        return seen

    seen = []
    for side in sides:
        side.broker.fetch_sessions._sessions.clear()
        with same_ids():
            seen.append(asyncio.run(run(side)))
    fast, plain = seen
    assert fast == plain
