"""Tests of the transaction checker: it finds each kind of anomaly, and nothing in a correct history."""

from __future__ import annotations

import pytest

from .history import Read
from .stories import Fate, Story
from .story_checker import Ending, broken_promises


@pytest.fixture
def stories() -> list[Story]:
    """One committed, one aborted, one with an unknown outcome; each with a record in two partitions."""
    told = []
    for number, fate in enumerate((Fate.COMMITTED, Fate.GONE, Fate.UNKNOWN)):
        story = Story("a", number, fate, moved_to=number + 1)
        for partition in range(2):
            story.next_value(partition)
            story.next_value(partition)
        told.append(story)
    return told


def whole(*numbers: int) -> dict[int, dict[int, str]]:
    """Logs that have these transactions of the worker."""
    return {
        partition: dict(enumerate(f"a:{number}:{partition}:{place}" for number in numbers for place in range(2)))
        for partition in range(2)
    }


def kinds(stories: list[Story], logs: dict[int, dict[int, str]], at: int | None, *reads: Read) -> set[str]:
    return {found.split(":")[0] for found in broken_promises(stories, reads, Ending(logs, {"a": at}))}


def test_logs_of_committed_transactions_are_correct(stories: list[Story]) -> None:
    assert kinds(stories, whole(0), 1, Read("r", 0, 0, "a:0:0:0")) == set()


def test_a_transaction_with_an_unknown_outcome_may_be_visible_as_a_whole(stories: list[Story]) -> None:
    assert kinds(stories, whole(0, 2), 3) == set()


def test_a_missing_committed_transaction_is_found(stories: list[Story]) -> None:
    assert kinds(stories, whole(), None) == {"lost"}


def test_a_visible_aborted_transaction_is_found(stories: list[Story]) -> None:
    assert kinds(stories, whole(0, 1), 2) == {"seen"}


@pytest.mark.parametrize("number", [0, 2])
def test_a_torn_transaction_is_found(stories: list[Story], number: int) -> None:
    logs = whole(0, 2)
    logs[1] = {offset: value for offset, value in logs[1].items() if not value.startswith(f"a:{number}")}

    assert kinds(stories, logs, 3) == {"torn"}


def test_a_duplicate_record_is_found(stories: list[Story]) -> None:
    logs = whole(0)
    logs[0][2] = "a:0:0:1"

    assert kinds(stories, logs, 1) == {"repeated", "reordered"}


def test_a_record_that_was_never_sent_is_found(stories: list[Story]) -> None:
    logs = whole(0)
    logs[0][2] = "b:0:0:0"

    assert kinds(stories, logs, 1) == {"from nowhere"}


def test_a_record_that_disappeared_after_it_was_read_is_found(stories: list[Story]) -> None:
    assert kinds(stories, whole(0), 1, Read("r", 0, 2, "a:1:0:0")) == {"dirty"}


@pytest.mark.parametrize("at", [None, 2, 3])
def test_offsets_that_disagree_with_records_are_found(stories: list[Story], at: int | None) -> None:
    assert kinds(stories, whole(0), at) == {"disagreeing"}
