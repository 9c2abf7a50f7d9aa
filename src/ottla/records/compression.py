"""Kafka's compression types, by cramjam. The output of a hostile batch is bounded."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

import cramjam

from ottla.core.errors import CorruptMessage, ErrorCode, UnsupportedCompressionType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_DECOMPRESSED_BYTES: Final = 128 << 20
"""Maximum decompressed size of one batch."""

# snappy-java's framing, written by Kafka's Java clients: this header, then blocks of length + raw snappy.
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES: Final = 32 * 1024

# The LZ4 frame written by Kafka's Java clients: this header, then blocks of length + raw LZ4, then a length of 0. The
# header says that blocks are independent and hold 64 KiB, with a checksum of that.
_LZ4_HEADER: Final = bytes.fromhex("04224d18 60 40 82")
_LZ4_BLOCK_BYTES: Final = 1 << 16
_LZ4_UNCOMPRESSED: Final = 1 << 31
_LZ4_END: Final = bytes(4)

# Offsets into a payload are int32, as in Kafka, regardless of the caller's limit.
_HIGHEST_LIMIT: Final = (1 << 31) - 1
_FIRST_GUESS: Final = 4
_SMALLEST_GUESS: Final = 16 * 1024
_GROWTH: Final = 4
_GZIP_BEST_RATIO: Final = 1032
_ZSTD_BEST_RATIO: Final = 128 * 1024  # a block of four bytes can repeat one byte this often

COMPRESSION_MASK: Final = 0x07
"""The compression bits of a batch's attributes."""
_GZIP_DEFAULT_LEVEL: Final = -1
_LZ4_DEFAULT_LEVEL: Final = 9


class DecompressedTooLarge(CorruptMessage):
    """Records that decompress to more than allowed. Not CORRUPT_MESSAGE, which clients retry."""

    code = ErrorCode.INVALID_RECORD


class Compression(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(
    codec: int, data: bytes | bytearray | memoryview, level: int | None = None
) -> bytes | bytearray | memoryview:
    """`level` is Kafka's compression.<codec>.level; None for the default."""
    match codec:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            return memoryview(cramjam.gzip.compress(data, None if level == _GZIP_DEFAULT_LEVEL else level))
        case Compression.SNAPPY:
            return _compress_xerial(memoryview(data))
        case Compression.LZ4:
            return _compress_lz4(data, level)
        case Compression.ZSTD:
            return memoryview(cramjam.zstd.compress(data, level))
    raise UnsupportedCompressionType(f"unknown compression type {codec}")


def decompress(
    codec: int,
    data: memoryview,
    max_bytes: int = MAX_DECOMPRESSED_BYTES,
    allocate: Callable[[int], bytearray] = bytearray,
) -> bytes | bytearray | memoryview:
    """Decompress; CorruptMessage if that fails, DecompressedTooLarge if the result exceeds `max_bytes`.

    The result is written to memory of at least the size passed to `allocate`.
    """
    max_bytes = max(0, min(max_bytes, _HIGHEST_LIMIT))
    try:
        match codec:
            case Compression.NONE:
                return data
            case Compression.GZIP:
                return _decompress_stream(cramjam.gzip.decompress_into, data, (_gzip_size(data), max_bytes), allocate)
            case Compression.SNAPPY:
                return _decompress_snappy(data, max_bytes, allocate)
            case Compression.LZ4:
                return _decompress_stream(cramjam.lz4.decompress_into, data, (0, max_bytes), allocate)
            case Compression.ZSTD:
                return _decompress_stream(cramjam.zstd.decompress_into, data, (_zstd_size(data), max_bytes), allocate)
    except cramjam.DecompressionError as broken:
        raise CorruptMessage(f"could not decompress the records: {broken}") from None
    raise UnsupportedCompressionType(f"unknown compression type {codec}")


def _compress_lz4(data: bytes | bytearray | memoryview, level: int | None) -> memoryview:
    # Kafka's Java reader rejects frames with dependent blocks, which are cramjam's default. Level 0
    # is lz4's fast compressor, which Kafka's default level of 9 selects (Lz4BlockOutputStream).
    if level is None or level in (0, _LZ4_DEFAULT_LEVEL):
        return memoryview(_compress_lz4_blocks(memoryview(data)))
    compressor = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    compressor.compress(bytes(data))
    return memoryview(compressor.finish())


def _compress_lz4_blocks(data: memoryview) -> bytes:
    """A frame built here: cramjam's frame compressor holds the GIL, its block compressor does not."""
    parts: list[bytes | memoryview] = [_LZ4_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        piece = data[start : start + _LZ4_BLOCK_BYTES]
        block = memoryview(cramjam.lz4.compress_block(piece, store_size=False))
        if len(block) < len(piece):
            parts += [len(block).to_bytes(4, "little"), block]
        else:
            parts += [(len(piece) | _LZ4_UNCOMPRESSED).to_bytes(4, "little"), piece]
    parts.append(_LZ4_END)
    return b"".join(parts)


def _compress_xerial(data: memoryview) -> bytes:
    parts: list[bytes | memoryview] = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = memoryview(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += [len(block).to_bytes(4, "big"), block]
    return b"".join(parts)


def _decompress_stream(
    into: Callable[..., int], data: memoryview, sizes: tuple[int, int], allocate: Callable[[int], bytearray]
) -> memoryview:
    # These formats need not state the decompressed size and may lie, so the buffer grows until it is sufficient or
    # too large.
    promised, max_bytes = sizes
    room = min(max(promised or len(data) * _FIRST_GUESS, _SMALLEST_GUESS), max_bytes)
    while True:
        target = memoryview(allocate(room))[:room]
        try:
            return target[: into(data, target)]
        except cramjam.DecompressionError as failed:
            if "failed to write whole buffer" not in str(failed):
                raise
            if room >= max_bytes:
                raise DecompressedTooLarge(f"the records decompress to more than {max_bytes} bytes") from None
        room = min(room * _GROWTH, max_bytes)


def _gzip_size(data: memoryview) -> int:
    """The size in the last four bytes, limited by what this input can produce. RFC 1952, 2.3.1"""
    return min(int.from_bytes(data[-4:], "little"), len(data) * _GZIP_BEST_RATIO)


def _zstd_size(data: memoryview) -> int:
    """The size in the frame header, limited by what this input can produce; 0 if none. RFC 8878, 3.1.1.1"""
    if len(data) < 5:
        return 0
    descriptor = data[4]
    is_single_segment = descriptor >> 5 & 1
    width = (is_single_segment, 2, 4, 8)[descriptor >> 6]
    start = 6 - is_single_segment + (0, 1, 2, 4)[descriptor & 3]
    size = int.from_bytes(data[start : start + width], "little")
    return min(size + 256 if width == 2 else size, len(data) * _ZSTD_BEST_RATIO)


def _decompress_snappy(data: memoryview, max_bytes: int, allocate: Callable[[int], bytearray]) -> memoryview:
    # Each block states its size first, so all are checked before anything is allocated.
    size = sum(map(cramjam.snappy.decompress_raw_len, _snappy_blocks(data)))
    if size > max_bytes:
        raise DecompressedTooLarge(f"the records decompress to more than {max_bytes} bytes")
    target = memoryview(allocate(size))[:size]
    at = 0
    for block in _snappy_blocks(data):
        at += cramjam.snappy.decompress_raw_into(block, target[at:])
    return target[:at]


def _snappy_blocks(data: memoryview) -> Iterator[memoryview]:
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        # librdkafka writes one bare block; snappy-java's reader accepts both.
        yield data
        return
    if len(data) < len(_XERIAL_HEADER):
        raise CorruptMessage("a snappy stream ends in its header")
    at = len(_XERIAL_HEADER)
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        at += 4
        if size > len(data) - at:
            raise CorruptMessage(f"a snappy block of {size} bytes is truncated to {len(data) - at}")
        yield data[at : at + size]
        at += size
