"""Finds anomalies of transactions: torn, lost, aborted but visible, offsets that disagree with records.

A pure function of the outcomes reported to producers and the final read_committed logs.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from .stories import Fate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .history import Read
    from .stories import Story


class Ending(NamedTuple):
    """The final state."""

    logs: Mapping[int, Mapping[int, str]]
    """Records read with read_committed, by partition and offset."""
    progress: Mapping[str, int | None]
    """The committed offset of each worker's group."""


def broken_promises(stories: Sequence[Story], reads: Iterable[Read], ending: Ending) -> list[str]:
    seen = {value for log in ending.logs.values() for value in log.values()}
    return [
        *_lost_seen_or_torn(stories, seen),
        *_repeated_or_from_nowhere(stories, ending.logs),
        *_reordered(ending.logs),
        *_read_and_gone(reads, ending.logs),
        *_disagreeing(stories, seen, ending.progress),
    ]


def _lost_seen_or_torn(stories: Iterable[Story], seen: set[str]) -> Iterator[str]:
    for story in stories:
        values = [value for sent in story.sent.values() for value in sent]
        there = [value for value in values if value in seen]
        name = f"{story.worker}:{story.number}"
        if story.fate is Fate.GONE and there:
            yield f"seen: {there} of {name}, which was not committed"
        elif story.fate is Fate.COMMITTED and not there and values:
            yield f"lost: {name} was committed and is missing"
        elif there and len(there) < len(values):
            yield f"torn: of {name} there are {there}, and not {sorted(set(values) - seen)}"


def _repeated_or_from_nowhere(stories: Iterable[Story], logs: Mapping[int, Mapping[int, str]]) -> Iterator[str]:
    sent = {value for story in stories for values in story.sent.values() for value in values}
    for partition, log in logs.items():
        for value, count in Counter(log.values()).items():
            if count > 1:
                yield f"repeated: {value} is {count} times in partition {partition}"
            if value not in sent:
                yield f"from nowhere: {value} in partition {partition} was never sent"


def _reordered(logs: Mapping[int, Mapping[int, str]]) -> Iterator[str]:
    for partition, log in logs.items():
        last: dict[str, tuple[int, int]] = {}
        for offset in sorted(log):
            worker, number, _, place = log[offset].split(":")
            now = int(number), int(place)
            if now <= last.get(worker, (-1, -1)):
                yield f"reordered: {log[offset]} at {partition}/{offset} behind {last[worker]}"
            last[worker] = now


def _read_and_gone(reads: Iterable[Read], logs: Mapping[int, Mapping[int, str]]) -> Iterator[str]:
    for reader, partition, offset, value in reads:
        found = logs.get(partition, {}).get(offset)
        if found != value:
            yield f"dirty: {reader} read {value} at {partition}/{offset}, where now is {found}"


def _disagreeing(stories: Iterable[Story], seen: set[str], progress: Mapping[str, int | None]) -> Iterator[str]:
    """A group's offset must be that of the last transaction whose records are visible."""
    wanted: dict[str, int | None] = dict.fromkeys(progress)
    for story in stories:
        if story.moved_to is not None and any(value in seen for values in story.sent.values() for value in values):
            wanted[story.worker] = story.moved_to
    for worker, offset in wanted.items():
        if progress.get(worker) != offset:
            yield f"disagreeing: the group of {worker} is at {progress.get(worker)}, its records at {offset}"
