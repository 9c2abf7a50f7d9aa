"""Which batches a topic's config accepts. Pure rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.errors import InvalidRecord, InvalidTimestamp, MessageTooLarge, RecordListTooLarge

if TYPE_CHECKING:
    from ottla.records.batch import BatchHeader
    from ottla.storage.config import LogConfig


def check_size(size: int, config: LogConfig) -> None:
    if size > config.max_message_bytes:
        raise MessageTooLarge(f"batch of {size} bytes exceeds max.message.bytes ({config.max_message_bytes})")
    if size > config.segment_bytes:
        raise RecordListTooLarge(f"batch of {size} bytes exceeds segment.bytes ({config.segment_bytes})")


def check_timestamp(header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    newest, first = header.max_timestamp, header.base_timestamp
    if newest < 0:
        return
    if newest - now_ms > config.message_timestamp_after_max_ms:
        raise InvalidTimestamp(f"timestamp {newest} is {newest - now_ms} ms in the future")
    # The other timestamps of the batch are unknown without decoding it.
    oldest = first if 0 <= first < newest else newest
    if now_ms - oldest > config.message_timestamp_before_max_ms:
        raise InvalidTimestamp(f"timestamp {oldest} is {now_ms - oldest} ms in the past")


def check_keys(batch: bytearray | memoryview, header: BatchHeader) -> None:
    """Check that every record has a key, as a compacted topic requires."""
    from ottla.records.compaction import has_record_without_key  # imported lazily: few topics are compacted

    if has_record_without_key(memoryview(batch), header):
        raise InvalidRecord("a record in a compacted topic must have a key")
