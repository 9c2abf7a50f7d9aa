"""A batch without some of its records."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from ottla.records.batch import HEADER_BYTES, check_batch
from ottla.records.compaction import emptied
from ottla.records.compression import decompress
from ottla.records.recompress import with_records

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_COUNT: Final = struct.Struct(">i")
_COUNT_AT: Final = HEADER_BYTES - _COUNT.size
_MAX_TIMESTAMP: Final = struct.Struct(">q")
_MAX_TIMESTAMP_AT: Final = 35
_MORE: Final = 0x80


def thinned(batch: memoryview, dropped: Collection[int], max_timestamp: int, max_bytes: int) -> bytearray:
    """Without the records at these indexes. The others keep their offsets, and the producer its sequence numbers."""
    header = check_batch(batch)
    records = bytes(decompress(header.compression, batch[HEADER_BYTES:], max_bytes))
    kept = [records[at:end] for index, (at, end) in enumerate(_bounds(records)) if index not in dropped]
    if not kept:
        return emptied(batch)
    head = bytearray(batch[:HEADER_BYTES])
    _COUNT.pack_into(head, _COUNT_AT, len(kept))
    _MAX_TIMESTAMP.pack_into(head, _MAX_TIMESTAMP_AT, max_timestamp)
    return with_records(memoryview(head), header, b"".join(kept), header.compression, None)


def _bounds(records: bytes) -> Iterator[tuple[int, int]]:
    """Where each record begins, with its length, and where it ends."""
    at = 0
    while at < len(records):
        begin, shift, number = at, 0, 0
        while True:
            byte = records[at]
            number |= (byte & ~_MORE) << shift
            at, shift = at + 1, shift + 7
            if not byte & _MORE:
                break
        at += (number >> 1) ^ -(number & 1)
        yield begin, at
