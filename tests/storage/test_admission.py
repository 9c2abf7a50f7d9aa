from __future__ import annotations

import pytest

from ottla.core.errors import InvalidTimestamp, MessageTooLarge, RecordListTooLarge
from ottla.records.batch import read_header
from ottla.storage.admission import check_size, check_timestamp
from ottla.storage.config import LogConfig

from .making import NOW, batch

HOUR_MS = 3_600_000
CONFIG = LogConfig(message_timestamp_before_max_ms=2 * HOUR_MS, message_timestamp_after_max_ms=HOUR_MS)


def test_a_batch_may_be_as_large_as_a_message_and_as_a_segment() -> None:
    check_size(2000, LogConfig(max_message_bytes=2000, segment_bytes=2000))
    with pytest.raises(MessageTooLarge, match=r"2001 bytes exceeds max.message.bytes \(2000\)"):
        check_size(2001, LogConfig(max_message_bytes=2000, segment_bytes=2000))
    with pytest.raises(RecordListTooLarge, match=r"2001 bytes exceeds segment.bytes \(2000\)"):
        check_size(2001, LogConfig(max_message_bytes=3000, segment_bytes=2000))


@pytest.mark.parametrize("age_ms", [2 * HOUR_MS, 0, -HOUR_MS])
def test_a_timestamp_up_to_the_limits_is_let_in(age_ms: int) -> None:
    check_timestamp(read_header(batch(at=NOW - age_ms)), CONFIG, NOW)


@pytest.mark.parametrize(("age_ms", "complaint"), [(2 * HOUR_MS + 1, "in the past"), (-HOUR_MS - 1, "in the future")])
def test_a_timestamp_past_them_is_refused(age_ms: int, complaint: str) -> None:
    with pytest.raises(InvalidTimestamp, match=complaint):
        check_timestamp(read_header(batch(at=NOW - age_ms)), CONFIG, NOW)


def test_one_old_record_at_the_head_of_a_young_batch_is_too_old() -> None:
    made = batch(b"old", b"young", at=[NOW - 3 * HOUR_MS, NOW])

    with pytest.raises(InvalidTimestamp, match=f"timestamp {NOW - 3 * HOUR_MS} is"):
        check_timestamp(read_header(made), CONFIG, NOW)


def test_records_without_a_timestamp_are_let_in() -> None:
    check_timestamp(read_header(batch(at=-1)), CONFIG, NOW)
