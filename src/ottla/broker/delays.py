"""Records that ask to be delivered later: by share groups and by queues, not by ordinary consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.records.batch import HEADER_BYTES
from ottla.records.compression import MAX_DECOMPRESSED_BYTES, decompress
from ottla.records.reader import RecordReader
from ottla.share.partition import Delay

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ottla.records.batch import BatchHeader

DELIVER_AT: Final = "ottla-deliver-at"
"""The name of the header: its value is milliseconds since 1970 as decimal digits."""
_NEEDLE: Final = DELIVER_AT.encode()
_MOST_DIGITS: Final = 15


def due_ms(headers: Iterable[tuple[str, bytes | None]]) -> int:
    """When a record with these headers is due; 0 if at once, which is what a value that is no number means too."""
    for name, value in headers:
        if name == DELIVER_AT and value is not None and value.isdigit() and len(value) <= _MOST_DIGITS:
            return int(value)
    return 0


def delays_in(batch: memoryview, header: BatchHeader, now_ms: int) -> Sequence[Delay]:
    """The records of a batch that are not due yet.

    Nearly always there are none, so the header's name is looked for in the bytes before any record is made of them.
    """
    content = decompress(header.compression, batch[HEADER_BYTES : header.size], MAX_DECOMPRESSED_BYTES)
    if _NEEDLE not in bytes(content):
        return ()
    return [
        Delay(record.offset, due)
        for record in RecordReader(batch, check_crcs=False)
        if (due := due_ms(record.headers)) > now_ms
    ]
