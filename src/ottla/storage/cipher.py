"""Batches in an `.elog` file: a plaintext header, encrypted records.

A stored batch has the usual format: `batch_length` and `crc` are of the stored bytes. So scanning,
verifying and indexing work the same for encrypted segments. Every header field,
the topic id and the partition are authenticated: a batch can be decrypted only in its place. The original checksum
is not stored, because it would leak information on the records; it is recomputed.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.core.errors import CorruptMessage
from ottla.core.sealing import SEAL_BYTES, BrokenSeal, key_id_of
from ottla.records.batch import CHECKSUM_STARTS_AT, HEADER_BYTES, LENGTH_STARTS_AT
from ottla.records.checksum import crc32c

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.core.ids import TopicId
    from ottla.core.sealing import Sealer
    from ottla.storage.folder.own_keys import OwnKeys
    from ottla.storage.segment_files.read_buffers import ReadBuffers

_LENGTH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_LENGTH_AT: Final = 8
_CRC_AT: Final = 17
KEY_ID_END: Final = HEADER_BYTES + 4


class BatchOwner(NamedTuple):
    """The topic and partition that batches are bound to."""

    topic_id: TopicId
    partition: int


class BatchCipher:
    """Encrypts and decrypts the batches of one partition."""

    __slots__ = ("_belongs_to", "_buffers", "_owner", "_sealer", "allows_plain", "own_keys")

    def __init__(self, sealer: Sealer, owner: BatchOwner, buffers: ReadBuffers, *, allows_plain: bool = True) -> None:
        self.allows_plain = allows_plain
        """Whether unencrypted segments from before encryption are allowed."""
        self._sealer = sealer
        self.own_keys: OwnKeys | None = None
        """The partition's own keys, if it has any."""
        self._owner = owner
        self._belongs_to = owner.topic_id.raw + owner.partition.to_bytes(4, "big")
        self._buffers = buffers

    def with_buffers(self, buffers: ReadBuffers) -> BatchCipher:
        """A copy with separate buffers, for use in another thread."""
        return BatchCipher(self._sealer, self._owner, buffers, allows_plain=self.allows_plain)

    def find_own_keys(self, folder: Path, *, must_exist: bool = True) -> OwnKeys | None:
        """Load the partition's own keys from its folder. They are used from now on, besides the folder's."""
        from ottla.storage.folder.own_keys import FILE, OwnKeys  # imported lazily

        if self.own_keys is None and (not must_exist or (folder / FILE).exists()):
            self.own_keys = OwnKeys(folder, self._sealer, self._owner)
            self._sealer = self.own_keys.sealer
        return self.own_keys

    @property
    def key_id(self) -> int:
        """The id of the current encryption key."""
        return self._sealer.newest

    def seal(self, batch: bytes | bytearray | memoryview) -> memoryview:
        """The stored form of a batch with assigned offsets, in a pooled buffer: do not keep it."""
        view = memoryview(batch)
        size = len(view) + SEAL_BYTES
        stored = self._buffers.empty(size)
        stored[:HEADER_BYTES] = view[:HEADER_BYTES]
        _LENGTH.pack_into(stored, _LENGTH_AT, size - LENGTH_STARTS_AT)
        self._sealer.seal_into(stored[HEADER_BYTES:], view[HEADER_BYTES:], self._bound_to(stored))
        _CRC.pack_into(stored, _CRC_AT, crc32c(stored[CHECKSUM_STARTS_AT:]))
        return stored

    def open(self, stored: bytes | memoryview) -> memoryview:
        """Decrypt batches; raises CorruptMessage if one cannot be authenticated."""
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
            raise CorruptMessage(f"could not decrypt the batch: {broken}") from None
        target[:HEADER_BYTES] = stored[:HEADER_BYTES]
        _LENGTH.pack_into(target, _LENGTH_AT, len(target) - LENGTH_STARTS_AT)
        _CRC.pack_into(target, _CRC_AT, crc32c(target[CHECKSUM_STARTS_AT:]))

    def _bound_to(self, stored: memoryview) -> bytes:
        return b"".join((self._belongs_to, stored[:_CRC_AT], stored[CHECKSUM_STARTS_AT:HEADER_BYTES]))


def _ends(stored: memoryview) -> list[int]:
    """The end of each batch. The caller has checked that the batches are complete."""
    ends: list[int] = []
    at = 0
    while at < len(stored):
        size = LENGTH_STARTS_AT + _LENGTH.unpack_from(stored, at + _LENGTH_AT)[0]
        if size < HEADER_BYTES + SEAL_BYTES:
            raise CorruptMessage(f"a batch of {size} bytes is too short for an encrypted one")
        at += size
        ends.append(at)
    return ends


def key_id_of_batch(start: bytes) -> int:
    """The key id of a stored batch, from its first KEY_ID_END bytes."""
    return key_id_of(start[HEADER_BYTES:KEY_ID_END])
