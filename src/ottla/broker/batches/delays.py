"""Records with delayed delivery: by share groups and queues, not by ordinary consumers."""

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
"""The name of the header: its value is milliseconds since 1970 as decimal digits."""
_NEEDLE: Final = DELIVER_AT.encode()
_MOST_DIGITS: Final = 15
_PIECE_BYTES: Final = 1 << 20


def due_ms(headers: Iterable[tuple[str, bytes | None]]) -> int:
    """When a record with these headers is due; 0 for at once, also if the value is not a number."""
    for name, value in headers:
        if name == DELIVER_AT and value is not None and value.isdigit() and len(value) <= _MOST_DIGITS:
            return int(value)
    return 0


def _has_needle(content: memoryview) -> bool:
    # In chunks: a memoryview cannot be searched, and a copy of everything may be large.
    step = _PIECE_BYTES - len(_NEEDLE)
    return any(_NEEDLE in bytes(content[at : at + _PIECE_BYTES]) for at in range(0, len(content), step))


class Delays(NamedTuple):
    """The records of a batch that are not due yet."""

    delays: Sequence[Delay] = ()
    inflated_bytes: int = 0
    """The bytes that were decompressed for it."""


def delays_in(batch: memoryview, header: BatchHeader, now_ms: int, max_bytes: int) -> Delays:
    """Raises DecompressedTooLarge.

    Delayed records are rare, so the header's name is searched for in the bytes before any record is parsed.
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
