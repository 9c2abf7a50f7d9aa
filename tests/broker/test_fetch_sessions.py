"""Incremental fetch sessions (KIP-227): the rules, then through a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.broker.requests import fetch_sessions
from ottla.broker.requests.fetch_sessions import (
    EVICTED_AFTER_S,
    FetchSessionIdNotFound,
    FetchSessions,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpoch,
)
from ottla.core.errors import ErrorCode
from ottla.records.reader import RecordReader
from ottla.wire.apis import FETCH
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic

from .making import create_topic, delete_topic, produce

if TYPE_CHECKING:
    import ottla

    from .raw_client import RawClient

VERSIONS = range(7, FETCH.last + 1)
EACH_VERSION = pytest.mark.parametrize("version", VERSIONS)
BY_ID_SINCE = 13
MIB = 1 << 20


def wanted(partition: int, offset: int = 0) -> FetchPartition:
    return FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=MIB)


def asked(
    session_id: int, epoch: int, *partitions: int, forgotten: tuple[int, ...] = (), topic: str = "t"
) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        session_id=session_id,
        session_epoch=epoch,
        topics=(FetchTopic(topic=topic, partitions=tuple(map(wanted, partitions))),) if partitions else (),
        forgotten_topics_data=(ForgottenTopic(topic=topic, partitions=forgotten),) if forgotten else (),
    )


class Rules:
    """Sessions with a manual clock."""

    def __init__(self, limit: int = 3) -> None:
        self.now_s = 1000.0
        self.sessions = FetchSessions(limit, lambda: self.now_s)

    def open(self, *partitions: int) -> int:
        """The id of a new session with these partitions; 0 if none was granted."""
        plan = self.sessions.plan(asked(0, 0, *partitions), is_by_id=False)
        assert [key.partition for key, _ in plan.wanted] == list(partitions)
        return plan.session.id if plan.session else 0

    def go_on(
        self, session_id: int, epoch: int, *partitions: int, forgotten: tuple[int, ...] = (), is_by_id: bool = False
    ) -> list[int]:
        """The partitions that an incremental fetch reads."""
        plan = self.sessions.plan(asked(session_id, epoch, *partitions, forgotten=forgotten), is_by_id=is_by_id)
        assert plan.is_incremental
        return [key.partition for key, _ in plan.wanted]


# The rules


def test_an_incremental_fetch_continues_and_changes_a_session() -> None:
    rules = Rules()
    session = rules.open(0, 1)
    assert session > 0
    assert rules.go_on(session, 1) == [0, 1]
    assert rules.go_on(session, 2, 2) == [0, 1, 2]
    assert rules.go_on(session, 3, forgotten=(0, 5)) == [1, 2]
    assert rules.go_on(session, 4, 0, forgotten=(0,)) == [1, 2, 0]


def test_a_partition_named_again_is_fetched_from_its_new_offset() -> None:
    rules = Rules()
    session = rules.open(0, 1)
    again = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        session_id=session,
        session_epoch=1,
        topics=(FetchTopic(topic="t", partitions=(wanted(0, offset=7),)),),
    )
    plan = rules.sessions.plan(again, is_by_id=False)
    assert [(key.partition, part.fetch_offset) for key, part in plan.wanted] == [(0, 7), (1, 0)]


def test_a_wrong_epoch_is_refused_and_changes_nothing() -> None:
    rules = Rules()
    session = rules.open(0)
    for epoch in (2, 5, -2, 2**31 - 1):
        with pytest.raises(InvalidFetchSessionEpoch):
            rules.go_on(session, epoch, 1)
    assert rules.go_on(session, 1) == [0]
    with pytest.raises(InvalidFetchSessionEpoch):
        rules.go_on(session, 1)


def test_an_unknown_session_is_refused() -> None:
    rules = Rules()
    session = rules.open(0)
    for unknown in (session + 1, 0, -1):
        with pytest.raises(FetchSessionIdNotFound):
            rules.go_on(unknown, 1)


def test_names_and_ids_cannot_be_mixed_in_one_session() -> None:
    rules = Rules()
    session = rules.open(0)
    with pytest.raises(FetchSessionTopicIdError):
        rules.go_on(session, 1, is_by_id=True)
    assert rules.go_on(session, 1) == [0]


def test_a_final_epoch_closes_the_session_and_fetches_the_named_partitions() -> None:
    rules = Rules()
    session = rules.open(0, 1)
    plan = rules.sessions.plan(asked(session, -1, 5), is_by_id=False)
    assert plan.session is None
    assert [key.partition for key, _ in plan.wanted] == [5]
    assert len(rules.sessions) == 0
    with pytest.raises(FetchSessionIdNotFound):
        rules.go_on(session, 1)


def test_a_full_fetch_in_a_session_replaces_it() -> None:
    rules = Rules()
    session = rules.open(0)
    plan = rules.sessions.plan(asked(session, 0, 1), is_by_id=False)
    assert plan.session is not None
    assert plan.session.id != session
    assert len(rules.sessions) == 1


def test_an_empty_full_fetch_opens_no_session() -> None:
    assert Rules().open() == 0


def test_epochs_wrap_around_to_one() -> None:
    rules = Rules()
    session = rules.open(0)
    rules.sessions._sessions[session].epoch = 2**31 - 1
    assert rules.go_on(session, 2**31 - 1) == [0]
    assert rules.go_on(session, 1) == [0]


def test_an_idle_session_is_evicted() -> None:
    rules = Rules(limit=3)
    first, second, third = rules.open(0), rules.open(0), rules.open(0)
    rules.now_s += EVICTED_AFTER_S - 1
    rules.go_on(first, 1)
    rules.now_s += 1
    fourth = rules.open(0)
    assert fourth
    with pytest.raises(FetchSessionIdNotFound):
        rules.go_on(second, 1)
    for session, epoch in ((first, 2), (third, 1), (fourth, 1)):
        assert rules.go_on(session, epoch) == [0]


def test_sessions_in_use_are_not_evicted_and_new_clients_get_none() -> None:
    rules = Rules(limit=3)
    sessions = [rules.open(0) for _ in range(3)]
    for epoch in range(1, 10):
        rules.now_s += 1
        assert rules.open(0) == 0
        for session in sessions:
            assert rules.go_on(session, epoch) == [0]


def test_the_number_of_partitions_in_all_sessions_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "MOST_PARTITIONS", 10)
    rules = Rules()
    assert rules.open(*range(11)) == 0
    first = rules.open(*range(6))
    second = rules.open(*range(4))
    assert first
    assert second
    assert rules.open(0) == 0
    with pytest.raises(FetchSessionIdNotFound):
        rules.go_on(second, 1, 5)
    assert rules.open(*range(4))
    rules.go_on(first, 1, forgotten=(0, 1, 2))
    assert rules.open(*range(3))


# Through a broker


class Consumer:
    """A consumer of one topic, in a session."""

    def __init__(self, client: RawClient, topic: str, topic_id: bytes, version: int) -> None:
        self.client = client
        self.topic = topic
        self.topic_id = topic_id
        self.version = version
        self.session_id = 0
        self.epoch = 0

    def ask(self, *partitions: FetchPartition, forgotten: tuple[int, ...] = (), max_wait_ms: int = 0) -> FetchResponse:
        by = {"topic_id": self.topic_id} if self.version >= BY_ID_SINCE else {"topic": self.topic}
        answer = self.client.ask(
            FetchRequest(
                max_wait_ms=max_wait_ms,
                min_bytes=1,
                session_id=self.session_id,
                session_epoch=self.epoch,
                topics=(FetchTopic(**by, partitions=partitions),) if partitions else (),
                forgotten_topics_data=(ForgottenTopic(**by, partitions=forgotten),) if forgotten else (),
            ),
            self.version,
        )
        if answer.error_code == ErrorCode.NONE:
            self.session_id = answer.session_id
            self.epoch += 1
        return answer

    def fetch(self, *partitions: FetchPartition, forgotten: tuple[int, ...] = ()) -> dict[int, list[int]]:
        """The returned partitions and the offsets in them."""
        answer = self.ask(*partitions, forgotten=forgotten)
        assert answer.error_code == ErrorCode.NONE
        return {
            data.partition_index: [each.offset for each in RecordReader(bytes(data.records or b""))]
            for topic in answer.responses
            for data in topic.partitions
        }


@pytest.fixture
def consumer(client: RawClient, name: str, version: int) -> Consumer:
    return Consumer(client, name, create_topic(client, name, partitions=3), version)


@EACH_VERSION
def test_only_changed_partitions_are_returned(client: RawClient, consumer: Consumer) -> None:
    produce(client, consumer.topic, b"a")
    assert consumer.fetch(wanted(0), wanted(1), wanted(2)) == {0: [0], 1: [], 2: []}
    assert consumer.session_id > 0
    session = consumer.session_id

    assert consumer.fetch(wanted(0, offset=1)) == {}
    produce(client, consumer.topic, b"b", partition=2)
    assert consumer.fetch() == {2: [0]}
    assert consumer.fetch(wanted(2, offset=1)) == {}
    assert consumer.session_id == session


@EACH_VERSION
def test_records_are_returned_until_the_client_advances_its_offset(client: RawClient, consumer: Consumer) -> None:
    produce(client, consumer.topic, b"a")
    assert consumer.fetch(wanted(0)) == consumer.fetch() == consumer.fetch() == {0: [0]}


@EACH_VERSION
def test_a_forgotten_partition_is_not_returned(client: RawClient, consumer: Consumer) -> None:
    consumer.fetch(wanted(0), wanted(1))
    produce(client, consumer.topic, b"a")
    produce(client, consumer.topic, b"b", partition=1)
    assert consumer.fetch(forgotten=(0,)) == {1: [0]}
    assert consumer.fetch(wanted(0), forgotten=(1,)) == {0: [0]}


@EACH_VERSION
def test_a_partition_that_returned_records_goes_to_the_end_of_the_queue(client: RawClient, consumer: Consumer) -> None:
    for partition in range(3):
        produce(client, consumer.topic, b"x", partition=partition)
    assert list(consumer.fetch(wanted(0), wanted(1), wanted(2))) == [0, 1, 2]
    assert list(consumer.fetch(wanted(0, offset=1))) == [1, 2]
    produce(client, consumer.topic, b"x")
    assert list(consumer.fetch()) == [0, 1, 2]


@EACH_VERSION
def test_errors_are_returned_each_time(client: RawClient, consumer: Consumer) -> None:
    produce(client, consumer.topic, b"a")
    for partitions in ((wanted(0, offset=1), wanted(7), wanted(1, offset=99)), (), ()):
        answer = consumer.ask(*partitions)
        [topic] = answer.responses
        codes = {data.partition_index: data.error_code for data in topic.partitions if data.error_code}
        assert codes == {7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 1: ErrorCode.OFFSET_OUT_OF_RANGE}
    assert consumer.fetch(wanted(1), forgotten=(7,)) == {1: []}
    assert consumer.fetch() == {}


@EACH_VERSION
def test_a_deleted_and_re_created_topic_is_an_unknown_id_in_the_session(client: RawClient, consumer: Consumer) -> None:
    consumer.fetch(wanted(0))
    delete_topic(client, consumer.topic)
    [topic] = consumer.ask().responses
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if consumer.version >= BY_ID_SINCE else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert topic.partitions[0].error_code == unknown
    create_topic(client, consumer.topic)
    produce(client, consumer.topic, b"new")
    answer = consumer.ask()
    if consumer.version >= BY_ID_SINCE:
        assert answer.responses[0].partitions[0].error_code == unknown
    else:
        assert answer.responses[0].partitions[0].records


@EACH_VERSION
def test_session_errors_are_returned_at_the_top_level(consumer: Consumer) -> None:
    consumer.fetch(wanted(0))
    session, epoch = consumer.session_id, consumer.epoch

    def refusal(session_id: int, session_epoch: int, version: int) -> tuple[int, int, tuple[object, ...]]:
        other = Consumer(consumer.client, consumer.topic, consumer.topic_id, version)
        other.session_id, other.epoch = session_id, session_epoch
        answer = other.ask(wanted(1))
        return answer.error_code, answer.session_id, answer.responses

    assert refusal(session ^ 1, epoch, consumer.version) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, ())
    assert refusal(session, epoch + 1, consumer.version) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, ())
    mixed = 12 if consumer.version >= BY_ID_SINCE else 13
    assert refusal(session, epoch, mixed) == (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 0, ())
    assert consumer.fetch() == {}


@EACH_VERSION
def test_a_waiting_session_fetch_is_woken_or_returns_empty_at_its_timeout(
    broker: ottla.Broker, client: RawClient, consumer: Consumer
) -> None:
    consumer.fetch(wanted(0), wanted(1))
    assert consumer.ask(max_wait_ms=10).responses == ()
    partition = broker.broker.topics.by_name[consumer.topic].partitions[1]
    assert not partition.waits
    produce(client, consumer.topic, b"a", partition=1)
    [topic] = consumer.ask(max_wait_ms=30_000).responses
    assert [data.partition_index for data in topic.partitions] == [1]
