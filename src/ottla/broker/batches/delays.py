"""Records with delayed delivery. Share groups and queues honour the delay; ordinary consumers do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.records.batch import HEADER_BYTES
from ottla.records.compression import decompress
from ottla.records.reader import RecordReader
from ottla.share.partition import Delay

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ottla.records.batch import BatchHeader

DELIVER_AT: Final = "ottla-deliver-at"
"""The name of the header; its value is the delivery time in milliseconds since 1970 as decimal digits."""
_NEEDLE: Final = DELIVER_AT.encode()
_MOST_DIGITS: Final = 15
_PIECE_BYTES: Final = 1 << 20


def due_ms(headers: Iterable[tuple[str, bytes | None]]) -> int:
    """The time at which a record with these headers is due; 0 if it is due at once, or if the value is not a number."""
    for name, value in headers:
        if name == DELIVER_AT and value is not None and value.isdigit() and len(value) <= _MOST_DIGITS:
            return int(value)
    return 0


def _has_needle(content: memoryview) -> bool:
    # Searched in chunks: a memoryview has no find(), and copying the whole batch could take much memory.
    step = _PIECE_BYTES - len(_NEEDLE)
    return any(_NEEDLE in bytes(content[at : at + _PIECE_BYTES]) for at in range(0, len(content), step))


class Delays(NamedTuple):
    """The records of a batch that are not due yet."""

    delays: Sequence[Delay] = ()
    inflated_bytes: int = 0
    """The number of bytes that were decompressed to find them."""


def delays_in(batch: memoryview, header: BatchHeader, now_ms: int, max_bytes: int) -> Delays:
    """Find the delayed records of a batch. Raises DecompressedTooLarge.

    Delayed records are rare, so the bytes are searched for the header's name before any record is parsed.
    """
    content = decompress(header.compression, batch[HEADER_BYTES : header.size], max_bytes)
    if not _has_needle(memoryview(content)):
        return Delays((), len(content))
    delays = [
        Delay(record.offset, due)
        for record in RecordReader(batch, 0, max_bytes, check_crcs=False)
        if (due := due_ms(record.headers)) > now_ms
    ]
    return Delays(delays, len(content))
