"""The checker of transactions itself: it finds each kind of wrong there is, and nothing where there is none."""

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


def test_what_is_committed_and_nothing_else_is_right(stories: list[Story]) -> None:
    assert kinds(stories, whole(0), 1, Read("r", 0, 0, "a:0:0:0")) == set()


def test_what_nobody_knows_of_may_be_there_as_a_whole(stories: list[Story]) -> None:
    assert kinds(stories, whole(0, 2), 3) == set()


def test_a_committed_transaction_that_is_not_there_is_lost(stories: list[Story]) -> None:
    assert kinds(stories, whole(), None) == {"lost"}


def test_an_aborted_one_that_is_seen_is_found(stories: list[Story]) -> None:
    assert kinds(stories, whole(0, 1), 2) == {"seen"}


@pytest.mark.parametrize("number", [0, 2])
def test_one_of_which_a_partition_lacks_a_part_is_torn(stories: list[Story], number: int) -> None:
    logs = whole(0, 2)
    logs[1] = {offset: value for offset, value in logs[1].items() if not value.startswith(f"a:{number}")}

    assert kinds(stories, logs, 3) == {"torn"}


def test_a_record_that_is_there_twice_is_found(stories: list[Story]) -> None:
    logs = whole(0)
    logs[0][2] = "a:0:0:1"

    assert kinds(stories, logs, 1) == {"repeated", "reordered"}


def test_a_record_that_nobody_sent_is_found(stories: list[Story]) -> None:
    logs = whole(0)
    logs[0][2] = "b:0:0:0"

    assert kinds(stories, logs, 1) == {"from nowhere"}


def test_what_was_read_and_did_not_stay_is_found(stories: list[Story]) -> None:
    assert kinds(stories, whole(0), 1, Read("r", 0, 2, "a:1:0:0")) == {"dirty"}


@pytest.mark.parametrize("at", [None, 2, 3])
def test_a_group_that_is_elsewhere_than_its_records_is_found(stories: list[Story], at: int | None) -> None:
    assert kinds(stories, whole(0), at) == {"disagreeing"}
