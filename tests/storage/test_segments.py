from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.core.clock import ManualClock
from ottla.storage.config import LogConfig
from ottla.storage.segment_files.cold_read import Bounds
from ottla.storage.segment_files.segment import Segment
from ottla.storage.segment_files.segments import Segments
from ottla.storage.segment_files.txn_index import AbortedTransaction

from .making import EVERY_BATCH, NOW, batch, offsets, placed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ottla.storage.segment_files.open_files import OpenFiles

CONFIG = LogConfig(index_interval_bytes=EVERY_BATCH)
NEXT = 32
# A gap before 20 and one before 30, as compaction leaves them; the segment at 20 has nothing left in it.
CONTENTS = {10: [10, 11, 12], 20: [], 30: [30, 31]}


@pytest.fixture
def segments(tmp_path: Path, files: OpenFiles) -> Iterator[Segments]:
    made = []
    for base_offset, contents in CONTENTS.items():
        segment = Segment.create(tmp_path, base_offset, CONFIG, files)
        for offset in contents:
            segment.append(placed(batch(at=NOW + offset), offset), offset, NOW + offset)
        made.append(segment)
    yield Segments(list(made), ManualClock())
    for segment in made:
        segment.close()


def read(segments: Segments, from_offset: int, until_offset: int = NEXT) -> list[int]:
    return offsets(segments.read(Bounds(from_offset, until_offset, 1 << 20), NEXT))


@pytest.mark.parametrize(("offset", "number"), [(0, 0), (10, 0), (19, 0), (20, 1), (29, 1), (30, 2), (99, 2)])
def test_an_offset_is_in_the_last_segment_that_begins_before_it(segments: Segments, offset: int, number: int) -> None:
    assert segments.number_of(offset) == number


@pytest.mark.parametrize(
    ("from_offset", "expected"), [(10, [10, 11, 12]), (12, [12]), (13, [30, 31]), (20, [30, 31]), (31, [31]), (32, [])]
)
def test_a_read_goes_on_to_the_first_segment_that_has_anything(
    segments: Segments, from_offset: int, expected: list[int]
) -> None:
    assert read(segments, from_offset) == expected


@pytest.mark.parametrize(("until_offset", "expected"), [(12, [10, 11]), (11, [10]), (10, [])])
def test_nothing_is_read_from_the_limit_on(segments: Segments, until_offset: int, expected: list[int]) -> None:
    assert read(segments, 10, until_offset) == expected


@pytest.mark.parametrize(("after", "from_offset", "expected"), [(11, 0, 11), (13, 0, 30), (0, 12, 12), (32, 0, None)])
def test_a_timestamp_is_looked_for_from_an_offset_on(
    segments: Segments, after: int, from_offset: int, expected: int | None
) -> None:
    found = segments.find_timestamp(NOW + after, from_offset, NEXT)

    assert (None if found is None else found.offset) == expected
    assert segments.newest_timestamp(0) == NOW + 31


def test_aborted_transactions_come_by_their_first_offset_whatever_segment_knows_of_them(segments: Segments) -> None:
    early, late = AbortedTransaction(1, 10, 31, 32), AbortedTransaction(2, 11, 12, 10)
    segments.all[2].txn_index.append(early)
    segments.all[0].txn_index.append(late)

    assert segments.aborted_transactions(10, NEXT) == [early, late]
    assert segments.aborted_transactions(13, NEXT) == [early]


def test_segments_come_at_the_end_and_go_from_either(segments: Segments, tmp_path: Path, files: OpenFiles) -> None:
    added = Segment.create(tmp_path, NEXT, CONFIG, files)
    segments.add(added)
    assert segments.active is added

    segments[2].release()
    assert segments.truncate(NEXT, 3, segments[2].size) == NEXT
    segments.drop_first(1)

    assert (segments.bases, segments.active.base_offset) == ([20, 30], 30)
    assert segments.size == segments.active.size > 0
    assert read(segments, 20) == [30, 31]
