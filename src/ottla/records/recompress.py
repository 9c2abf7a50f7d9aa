"""A batch in another compression, otherwise unchanged."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from ottla.records.batch import CHECKSUM_STARTS_AT, HEADER_BYTES, LENGTH_STARTS_AT, check_batch
from ottla.records.checksum import crc32c
from ottla.records.compression import COMPRESSION_MASK, compress, decompress

if TYPE_CHECKING:
    from ottla.records.batch import BatchHeader

_ATTRIBUTES: Final = struct.Struct(">h")
_LENGTH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_LENGTH_AT: Final = LENGTH_STARTS_AT - _LENGTH.size
_CRC_AT: Final = CHECKSUM_STARTS_AT - _CRC.size


def recompressed(batch: memoryview, codec: int, level: int | None, max_bytes: int) -> bytearray:
    """The batch with its records compressed by `codec`.

    CorruptMessage if decompression fails or exceeds `max_bytes`. The records are not parsed.
    """
    header = check_batch(batch)
    return with_records(batch, header, decompress(header.compression, batch[HEADER_BYTES:], max_bytes), codec, level)


def with_records(
    batch: memoryview, header: BatchHeader, records: bytes | bytearray | memoryview, codec: int, level: int | None
) -> bytearray:
    """A batch with this header and these records, compressed by `codec`."""
    made = bytearray(batch[:HEADER_BYTES])
    made += compress(codec, records, level)
    _LENGTH.pack_into(made, _LENGTH_AT, len(made) - LENGTH_STARTS_AT)
    _ATTRIBUTES.pack_into(made, CHECKSUM_STARTS_AT, header.attributes & ~COMPRESSION_MASK | codec)
    _CRC.pack_into(made, _CRC_AT, crc32c(memoryview(made)[CHECKSUM_STARTS_AT:]))
    return made
