from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.core.ids import MAX_TOPIC_NAME_LENGTH, TopicId, TopicPartition, problem_with_topic_name


def test_a_partition_is_formatted_like_its_folder() -> None:
    assert str(TopicPartition("orders-eu", 3)) == "orders-eu-3"


def test_partitions_sort_by_topic_and_then_by_number() -> None:
    unsorted = [TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 9)]

    assert sorted(unsorted) == [TopicPartition("a", 9), TopicPartition("a", 10), TopicPartition("b", 0)]


@given(st.uuids())
def test_a_topic_id_round_trips_through_text_and_bytes(value: uuid.UUID) -> None:
    topic_id = TopicId(value)

    assert TopicId.parse(str(topic_id)) == topic_id
    assert len(topic_id.text) == 22
    assert TopicId(uuid.UUID(bytes=topic_id.raw)) == topic_id


def test_a_topic_id_is_written_as_kafka_writes_it() -> None:
    # Kafka's Uuid.METADATA_TOPIC_ID, which is new Uuid(0L, 1L).
    assert TopicId(uuid.UUID(int=1)).text == "AAAAAAAAAAAAAAAAAAAAAQ"


def test_a_random_topic_id_never_starts_with_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    with_a_dash = TopicId.parse("-AAAAAAAAAAAAAAAAAAAAA").value
    candidates = iter([with_a_dash, with_a_dash, uuid.UUID(int=7)])
    monkeypatch.setattr(uuid, "uuid4", lambda: next(candidates))

    assert TopicId.random() == TopicId(uuid.UUID(int=7))


@pytest.mark.parametrize("text", ["", "AAAA", "A" * 21, "A" * 23, "A" * 22 + "==", "+" * 22, "ä" * 22, "A A" * 7])
def test_an_invalid_topic_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a topic id"):
        TopicId.parse(text)


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "...", "__consumer_offsets", "x" * MAX_TOPIC_NAME_LENGTH])
def test_a_legal_topic_name_has_no_problem(name: str) -> None:
    assert problem_with_topic_name(name) is None


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "empty"),
        (".", "invalid topic name '.'"),
        ("..", "invalid topic name '..'"),
        ("x" * (MAX_TOPIC_NAME_LENGTH + 1), "at most 249"),
        ("a/b", "may contain only"),
        ("a b", "may contain only"),
        ("a\n", "may contain only"),
        ("größe", "may contain only"),
        ("a\0", "may contain only"),
    ],
)
def test_an_illegal_topic_name_has_a_problem_that_says_why(name: str, problem: str) -> None:
    assert problem in (problem_with_topic_name(name) or "")
