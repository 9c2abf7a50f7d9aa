"""Tests of the checker: it finds each kind of anomaly, and nothing in a correct history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .checker import violations
from .history import History, Read, Sent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

A0, A1, A2 = (Sent("a", number, 0) for number in range(3))


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    history = History(tmp_path / "history.jsonl")
    for number, sent in enumerate((A0, A1, A2)):
        history.sends(sent)
        if sent is not A2:
            history.acknowledges(sent, number)
    yield history
    history.close()


def kinds(history: History, log: dict[int, str]) -> set[str]:
    return {found.split(":")[0] for found in violations(history, {0: log})}


def test_a_log_of_acknowledged_records_is_correct(history: History) -> None:
    assert kinds(history, {0: A0.value, 1: A1.value}) == set()


def test_unacknowledged_records_may_be_in_the_log(history: History) -> None:
    assert kinds(history, {0: A0.value, 1: A1.value, 2: A2.value}) == set()


def test_a_missing_acknowledged_record_is_found(history: History) -> None:
    assert kinds(history, {0: A0.value}) == {"lost"}


def test_a_duplicate_record_is_found(history: History) -> None:
    assert kinds(history, {0: A0.value, 1: A1.value, 2: A1.value}) == {"repeated", "reordered"}


def test_records_of_a_producer_out_of_order_are_found(history: History) -> None:
    history.acknowledged.clear()

    assert kinds(history, {0: A1.value, 1: A0.value}) == {"reordered"}


def test_a_record_that_was_never_sent_is_found(history: History) -> None:
    assert kinds(history, {0: A0.value, 1: A1.value, 2: "b:0:0"}) == {"from nowhere"}


def test_an_offset_assigned_twice_is_found(history: History) -> None:
    history.acknowledges(A2, 1)

    assert "split" in kinds(history, {0: A0.value, 1: A1.value})


def test_a_record_that_changed_after_it_was_read_is_found(history: History) -> None:
    history.read([Read("c", 0, 2, A2.value)])

    assert kinds(history, {0: A0.value, 1: A1.value}) == {"unread"}
