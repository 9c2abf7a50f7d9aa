"""Finds anomalies in a history. A pure function of the history and the final logs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .history import Sent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .history import History

UNTOLD = -1
"""The offset of a record that was acknowledged as a duplicate."""


def violations(history: History, logs: Mapping[int, Mapping[int, str]]) -> list[str]:
    return [
        *_lost_or_moved(history, logs),
        *_acknowledged_twice(history),
        *_repeated(logs),
        *_reordered(logs),
        *_from_nowhere(history, logs),
        *_read_and_gone(history, logs),
    ]


def _lost_or_moved(history: History, logs: Mapping[int, Mapping[int, str]]) -> Iterator[str]:
    for sent, offset in history.acknowledged:
        log = logs.get(sent.partition, {})
        if offset == UNTOLD:
            if sent.value not in log.values():
                yield f"lost: {sent.value} was acknowledged and is missing"
            continue
        found = log.get(offset)
        if found != sent.value:
            yield f"lost: {sent.value} was acknowledged at {sent.partition}/{offset}, where now is {found}"


def _acknowledged_twice(history: History) -> Iterator[str]:
    """Split brain: two leaders have assigned the same offset to different records."""
    by_place: dict[tuple[int, int], str] = {}
    for sent, offset in history.acknowledged:
        if offset == UNTOLD:
            continue
        other = by_place.setdefault((sent.partition, offset), sent.value)
        if other != sent.value:
            yield f"split: {other} and {sent.value} were both acknowledged at {sent.partition}/{offset}"


def _repeated(logs: Mapping[int, Mapping[int, str]]) -> Iterator[str]:
    for partition, log in logs.items():
        for value, count in Counter(log.values()).items():
            if count > 1:
                yield f"repeated: {value} is {count} times in partition {partition}"


def _reordered(logs: Mapping[int, Mapping[int, str]]) -> Iterator[str]:
    for partition, log in logs.items():
        last: dict[str, int] = {}
        for offset in sorted(log):
            sent = Sent.parse(log[offset])
            if sent.number <= last.get(sent.producer, -1):
                yield f"reordered: {sent.value} at {partition}/{offset} behind number {last[sent.producer]}"
            last[sent.producer] = sent.number


def _from_nowhere(history: History, logs: Mapping[int, Mapping[int, str]]) -> Iterator[str]:
    sent = {each.value for each in history.sent}
    for partition, log in logs.items():
        for offset, value in log.items():
            if value not in sent:
                yield f"from nowhere: {value} at {partition}/{offset} was never sent"


def _read_and_gone(history: History, logs: Mapping[int, Mapping[int, str]]) -> Iterator[str]:
    """A consumer reads only committed records, so they must not change afterwards."""
    for reader, partition, offset, value in history.reads:
        found = logs.get(partition, {}).get(offset)
        if found != value:
            yield f"unread: {reader} read {value} at {partition}/{offset}, where now is {found}"
