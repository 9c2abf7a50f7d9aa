"""Finds the invalid records of a rejected batch (KIP-467)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.batches.inflating import AT_ONCE_BYTES
from ottla.core.errors import ApiError, ErrorCode
from ottla.records.reader import RecordReader
from ottla.wire.messages.produce import BatchIndexAndErrorMessage

if TYPE_CHECKING:
    from ottla.records.reader import Record
    from ottla.storage.config import LogConfig


def record_errors(
    batch: bytes | bytearray | memoryview, code: ErrorCode, config: LogConfig, now_ms: int
) -> tuple[BatchIndexAndErrorMessage, ...]:
    """Empty if the batch itself is invalid, or too large when decompressed."""
    if code is ErrorCode.INVALID_RECORD and config.cleanup_policy == "delete":
        return ()
    try:
        problems = (_problem(record, code, config, now_ms) for record in RecordReader(batch, 0, AT_ONCE_BYTES))
        return tuple(
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=problem)
            for index, problem in enumerate(problems)
            if problem is not None
        )
    except ApiError:
        return ()


def _problem(record: Record, code: ErrorCode, config: LogConfig, now_ms: int) -> str | None:
    if code is ErrorCode.INVALID_RECORD:
        return "records of a compacted topic must have a key" if record.key is None else None
    if record.timestamp < 0:
        return None
    ahead_ms = record.timestamp - now_ms
    if ahead_ms > config.message_timestamp_after_max_ms:
        return f"timestamp {record.timestamp} is {ahead_ms} ms in the future"
    if -ahead_ms > config.message_timestamp_before_max_ms:
        return f"timestamp {record.timestamp} is {-ahead_ms} ms in the past"
    return None
