"""Batches as an `.elog` file holds them: the header as it is, the records sealed.

A stored batch has the form of any other: `batch_length` and `crc` are of what is stored. So whatever steps from batch
to batch, checks or indexes them works on encrypted segments as it does on plain ones. The seal covers every field of
the header, the topic's id and the partition: a batch opens only where it was written. The checksum that the batch came
with is not kept, because it would tell something of the records; it is calculated again.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.core.errors import CorruptMessage
from ottla.core.sealing import SEAL_BYTES, BrokenSeal, key_id_of
from ottla.records.batch import CHECKSUM_STARTS_AT, HEADER_BYTES, LENGTH_STARTS_AT
from ottla.records.checksum import crc32c

if TYPE_CHECKING:
    from ottla.core.ids import TopicId
    from ottla.core.sealing import Sealer
    from ottla.storage.read_buffers import ReadBuffers

_LENGTH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_LENGTH_AT: Final = 8
_CRC_AT: Final = 17
KEY_ID_END: Final = HEADER_BYTES + 4


class BatchOwner(NamedTuple):
    """Where batches belong, and open alone."""

    topic_id: TopicId
    partition: int


class BatchCipher:
    """Seals and opens the batches of one partition."""

    __slots__ = ("_belongs_to", "_buffers", "_owner", "_sealer", "allows_plain")

    def __init__(self, sealer: Sealer, owner: BatchOwner, buffers: ReadBuffers, *, allows_plain: bool = True) -> None:
        self.allows_plain = allows_plain
        """Whether there may be segments from before encryption was turned on."""
        self._sealer = sealer
        self._owner = owner
        self._belongs_to = owner.topic_id.raw + owner.partition.to_bytes(4, "big")
        self._buffers = buffers

    def with_buffers(self, buffers: ReadBuffers) -> BatchCipher:
        """For another thread: nobody shares memory that is used again."""
        return BatchCipher(self._sealer, self._owner, buffers, allows_plain=self.allows_plain)

    @property
    def key_id(self) -> int:
        """Of the key that batches are sealed with now."""
        return self._sealer.ring.newest

    def seal(self, batch: bytes | bytearray | memoryview) -> memoryview:
        """What to store for a batch that has its place in the log; for immediate use."""
        view = memoryview(batch)
        size = len(view) + SEAL_BYTES
        stored = self._buffers.empty(size)
        stored[:HEADER_BYTES] = view[:HEADER_BYTES]
        _LENGTH.pack_into(stored, _LENGTH_AT, size - LENGTH_STARTS_AT)
        self._sealer.seal_into(stored[HEADER_BYTES:], view[HEADER_BYTES:], self._bound_to(stored))
        _CRC.pack_into(stored, _CRC_AT, crc32c(stored[CHECKSUM_STARTS_AT:]))
        return stored

    def open(self, stored: bytes | memoryview) -> memoryview:
        """The batches that were stored, as they came; CorruptMessage if any of them is not what was stored."""
        view = memoryview(stored)
        ends = _ends(view)
        opened = self._buffers.empty(len(view) - SEAL_BYTES * len(ends))
        start = written = 0
        for end in ends:
            size = end - start - SEAL_BYTES
            self._open_into(opened[written : written + size], view[start:end])
            start, written = end, written + size
        return opened.toreadonly()

    def _open_into(self, target: memoryview, stored: memoryview) -> None:
        try:
            self._sealer.open_into(target[HEADER_BYTES:], stored[HEADER_BYTES:], self._bound_to(stored))
        except BrokenSeal as broken:
            raise CorruptMessage(f"the batch is not as it was written: {broken}") from None
        target[:HEADER_BYTES] = stored[:HEADER_BYTES]
        _LENGTH.pack_into(target, _LENGTH_AT, len(target) - LENGTH_STARTS_AT)
        _CRC.pack_into(target, _CRC_AT, crc32c(target[CHECKSUM_STARTS_AT:]))

    def _bound_to(self, stored: memoryview) -> bytes:
        return b"".join((self._belongs_to, stored[:_CRC_AT], stored[CHECKSUM_STARTS_AT:HEADER_BYTES]))


def _ends(stored: memoryview) -> list[int]:
    """Where each batch ends. They are whole, which whoever reads them has made sure of."""
    ends: list[int] = []
    at = 0
    while at < len(stored):
        size = LENGTH_STARTS_AT + _LENGTH.unpack_from(stored, at + _LENGTH_AT)[0]
        if size < HEADER_BYTES + SEAL_BYTES:
            raise CorruptMessage(f"a batch of {size} bytes is too short to be encrypted")
        at += size
        ends.append(at)
    return ends


def key_id_of_batch(start: bytes) -> int:
    """The number of the key that a stored batch was sealed with, by its first KEY_ID_END bytes."""
    return key_id_of(start[HEADER_BYTES:KEY_ID_END])
