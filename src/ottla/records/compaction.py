"""Compaction of one batch: fewer records, at their offsets.

A batch keeps its first and last offset, its producer and its sequence numbers. Its delete horizon is stored in it
(KIP-534): bit 6 of the attributes changes the meaning of the base timestamp.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from ottla.records.batch import CHECKSUM_STARTS_AT, HEADER_BYTES, LENGTH_STARTS_AT
from ottla.records.checksum import crc32c
from ottla.records.compression import COMPRESSION_MASK, MAX_DECOMPRESSED_BYTES, Compression, compress, decompress
from ottla.records.key_offsets import has_keyless, keep_latest, note_keys

if TYPE_CHECKING:
    from ottla.records.batch import BatchHeader
    from ottla.records.key_offsets import Kept, KeyOffsets

FinishedT = TypeVar("FinishedT", bytearray, "bytearray | memoryview")

_HAS_DELETE_HORIZON: Final = 0x40
_NO_TIMESTAMP: Final = -1
_LENGTH: Final = struct.Struct(">i")
_LENGTH_AT: Final = LENGTH_STARTS_AT - _LENGTH.size
_CHECKSUM: Final = struct.Struct(">I")
_CHECKSUM_AT: Final = CHECKSUM_STARTS_AT - _CHECKSUM.size
_ATTRIBUTES: Final = struct.Struct(">h")
_TIMESTAMPS: Final = struct.Struct(">qq")
_TIMESTAMPS_AT: Final = 27
_COUNT: Final = struct.Struct(">i")
_COUNT_AT: Final = 57


class TombstoneRule(NamedTuple):
    """How long tombstones are kept after the first compaction that saw them."""

    now_ms: int
    delete_retention_ms: int
    may_remove: bool = True
    """False while a replica may lack some of them: it would keep the records that they delete."""

    @property
    def horizon_ms(self) -> int:
        return self.now_ms + self.delete_retention_ms

    def is_over(self, horizon: int | None) -> bool:
        """Whether the tombstones of a batch with this delete horizon are removed."""
        return self.may_remove and horizon is not None and self.now_ms >= horizon


def delete_horizon(header: BatchHeader) -> int | None:
    """The delete horizon of the batch's tombstones or marker; None if not set."""
    return header.base_timestamp if header.attributes & _HAS_DELETE_HORIZON else None


def note_batch(keys: KeyOffsets, batch: memoryview, header: BatchHeader) -> bool:
    """Add the keys of this batch; False if there was no room for all of them."""
    return note_keys(keys, _records(batch, header, keys), header.base_offset)


def has_record_without_key(batch: memoryview, header: BatchHeader, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> bool:
    return has_keyless(decompress(header.compression, batch[HEADER_BYTES:], max_bytes))


def compacted(
    batch: memoryview, header: BatchHeader, keys: KeyOffsets, rule: TombstoneRule
) -> bytes | bytearray | memoryview | None:
    """The batch without superseded records; itself if none is, None if nothing is left.

    The result is valid until the same keys are used for the next batch.
    """
    horizon = delete_horizon(header)
    with_tombstones = not rule.is_over(horizon)
    records = _records(batch, header, keys)
    kept = keep_latest(keys, records, header.base_offset, 0, with_tombstones)
    if not kept.record_count:
        return None
    if kept.has_tombstones and horizon is None:
        earlier_by = header.base_timestamp - rule.horizon_ms
        kept = keep_latest(keys, records, header.base_offset, earlier_by, with_tombstones)
        return _rebuilt(batch, header, kept, rule.horizon_ms)
    return batch if kept.record_count == header.record_count else _rebuilt(batch, header, kept, horizon)


def with_horizon(batch: memoryview, header: BatchHeader, rule: TombstoneRule) -> bytearray | memoryview:
    """The same batch with a delete horizon."""
    records = decompress(header.compression, batch[HEADER_BYTES:])
    kept = keep_latest(None, records, header.base_offset, header.base_timestamp - rule.horizon_ms)
    return _rebuilt(batch, header, kept, rule.horizon_ms)


def emptied(batch: memoryview) -> bytearray:
    """The batch without records: keeps a producer's last sequence number."""
    made = bytearray(batch[:HEADER_BYTES])
    attributes = _ATTRIBUTES.unpack_from(made, CHECKSUM_STARTS_AT)[0] & ~(COMPRESSION_MASK | _HAS_DELETE_HORIZON)
    _ATTRIBUTES.pack_into(made, CHECKSUM_STARTS_AT, attributes)
    max_timestamp = _TIMESTAMPS.unpack_from(made, _TIMESTAMPS_AT)[1]
    _TIMESTAMPS.pack_into(made, _TIMESTAMPS_AT, _NO_TIMESTAMP, max_timestamp)
    _COUNT.pack_into(made, _COUNT_AT, 0)
    return _finished(made)


def _records(batch: memoryview, header: BatchHeader, keys: KeyOffsets) -> bytes | bytearray | memoryview:
    return decompress(header.compression, batch[HEADER_BYTES:], allocate=keys.room_to_read)


def _rebuilt(batch: memoryview, header: BatchHeader, kept: Kept, horizon: int | None) -> bytearray | memoryview:
    made: bytearray | memoryview
    if header.compression == Compression.NONE:
        made = kept.batch
        made[:HEADER_BYTES] = batch[:HEADER_BYTES]
    else:
        made = bytearray(batch[:HEADER_BYTES])
        made += compress(header.compression, kept.records)
    base_timestamp = header.base_timestamp if horizon is None else horizon
    attributes = header.attributes if horizon is None else header.attributes | _HAS_DELETE_HORIZON
    max_timestamp = header.max_timestamp if header.is_log_append_time else base_timestamp + kept.max_timestamp_delta
    _ATTRIBUTES.pack_into(made, CHECKSUM_STARTS_AT, attributes)
    _TIMESTAMPS.pack_into(made, _TIMESTAMPS_AT, base_timestamp, max_timestamp)
    _COUNT.pack_into(made, _COUNT_AT, kept.record_count)
    return _finished(made)


def _finished(made: FinishedT) -> FinishedT:
    _LENGTH.pack_into(made, _LENGTH_AT, len(made) - LENGTH_STARTS_AT)
    _CHECKSUM.pack_into(made, _CHECKSUM_AT, crc32c(memoryview(made)[CHECKSUM_STARTS_AT:]))
    return made
