"""Kafka's five codecs, compatibility with other libraries, and decompression bombs."""

from __future__ import annotations

import gzip
import random
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import cramjam
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ottla.core.errors import CorruptMessage, UnsupportedCompressionType

from .making import GZIP, LZ4, NONE, SNAPPY, ZSTD, batch, forget_peak, peak_bytes, record

if TYPE_CHECKING:
    from collections.abc import Callable

    from fuzz.forms import Form

XERIAL = b"\x82SNAPPY\x00" + b"\x00\x00\x00\x01" * 2
MIB = 1 << 20


def unpacked(form: Form, codec: int, data: Any, *limit: int) -> bytes:
    return bytes(form.compression.decompress(codec, memoryview(data), *limit))


@settings(max_examples=40)
@pytest.mark.parametrize("codec", range(5))
@given(data=st.binary(max_size=2000), times=st.integers(0, 200))
@example(data=b"", times=1)
def test_compression_round_trips(form: Form, codec: int, data: bytes, times: int) -> None:
    data *= times

    assert unpacked(form, codec, form.compression.compress(codec, data)) == data
    assert unpacked(form, codec, form.compression.compress(codec, memoryview(data)), len(data)) == data


def test_the_codes_are_kafkas(form: Form) -> None:
    names = {each.name.lower(): int(each) for each in form.compression.Compression}

    assert names == {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@pytest.mark.parametrize("codec", [5, 6, 7, -1])
def test_an_unknown_code_is_refused_by_name(form: Form, codec: int) -> None:
    with pytest.raises(UnsupportedCompressionType, match=f"unknown compression type {codec}"):
        form.compression.compress(codec, b"")
    with pytest.raises(UnsupportedCompressionType, match=f"unknown compression type {codec}"):
        unpacked(form, codec, b"")


def test_uncompressed_data_is_not_copied(form: Form) -> None:
    data = memoryview(b"as it is")

    assert form.compression.compress(NONE, data) is data
    assert form.compression.decompress(NONE, data) is data


def snappy_by_arrow(stream: bytes) -> bytes:
    """The blocks of snappy-java's framing, each decompressed by another library."""
    assert stream.startswith(XERIAL)
    out, at = b"", 16
    while at < len(stream):
        size = int.from_bytes(stream[at : at + 4], "big")
        block = stream[at + 4 : at + 4 + size]
        out += pa.decompress(block, 32 * 1024, "snappy", asbytes=True)[: cramjam.snappy.decompress_raw_len(block)]
        at += 4 + size
    return out


INCOMPRESSIBLE = random.Random(1).randbytes(200_000)
FOREIGN_READERS: dict[int, Callable[[bytes, int], bytes]] = {
    GZIP: lambda data, _: gzip.decompress(data),
    SNAPPY: lambda data, _: snappy_by_arrow(data),
    LZ4: lambda data, size: pa.decompress(data, size, "lz4", asbytes=True),
    ZSTD: lambda data, size: pa.decompress(data, size, "zstd", asbytes=True),
}


@pytest.mark.parametrize("codec", FOREIGN_READERS)
@pytest.mark.parametrize(
    "data", [b"x", b"hello " * 7, bytes(100_000), bytes(range(256)) * 1000, INCOMPRESSIBLE], ids=len
)
def test_other_libraries_read_our_output(form: Form, codec: int, data: bytes) -> None:
    assert FOREIGN_READERS[codec](bytes(form.compression.compress(codec, data)), len(data)) == data


@pytest.mark.parametrize("data", [b"x", bytes(100_000), bytes(range(256)) * 1000], ids=len)
def test_we_read_the_output_of_other_libraries(form: Form, data: bytes) -> None:
    assert unpacked(form, GZIP, gzip.compress(data)) == data
    assert unpacked(form, SNAPPY, pa.compress(data, "snappy", asbytes=True)) == data
    assert unpacked(form, LZ4, pa.compress(data, "lz4", asbytes=True)) == data
    assert unpacked(form, ZSTD, pa.compress(data, "zstd", asbytes=True)) == data


def test_streams_without_a_content_size_are_read(form: Form) -> None:
    data = bytes(range(256)) * 2000
    with pa.BufferOutputStream() as sink:
        with pa.CompressedOutputStream(sink, "zstd") as stream:
            stream.write(data)
        packed = sink.getvalue().to_pybytes()

    assert packed[4] >> 5 == 0  # neither a content size nor a single segment, as Java's zstd writes
    assert unpacked(form, ZSTD, packed) == data


def test_our_lz4_blocks_are_independent_as_kafka_requires(form: Form) -> None:
    frame = bytes(form.compression.compress(LZ4, bytes(300_000)))

    assert frame[:4] == b"\x04\x22\x4d\x18"
    flags = frame[4]
    assert flags >> 6 == 1  # the version
    assert flags >> 5 & 1 == 1  # independent blocks: Lz4BlockOutputStream.FLG.validate
    assert flags & 0b11 == 0  # reserved


def test_our_snappy_has_the_framing_of_snappy_java(form: Form) -> None:
    stream = bytes(form.compression.compress(SNAPPY, bytes(70_000)))

    assert stream.startswith(XERIAL)
    assert int.from_bytes(stream[16:20], "big") < 32 * 1024
    assert snappy_by_arrow(stream) == bytes(70_000)


def test_several_members_or_frames_are_one_stream(form: Form) -> None:
    assert unpacked(form, GZIP, gzip.compress(b"one ") + gzip.compress(b"two" * 50_000)) == b"one " + b"two" * 50_000
    frames = [bytes(cramjam.zstd.compress(part)) for part in (b"one ", b"two" * 50_000)]
    assert unpacked(form, ZSTD, b"".join(frames)) == b"one " + b"two" * 50_000


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
class TestBrokenStreams:
    def test_every_truncation_is_corrupt(self, form: Form, codec: int) -> None:
        packed = bytes(form.compression.compress(codec, bytes(range(256)) * 3))
        for size in range(len(packed)):
            if codec == SNAPPY and size == 16:
                continue  # the header of a stream without blocks
            with pytest.raises(CorruptMessage):
                unpacked(form, codec, packed[:size])

    def test_every_flipped_bit_is_corrupt_or_has_bounded_output(self, form: Form, codec: int) -> None:
        packed = bytearray(form.compression.compress(codec, b"some text, " * 20))
        for position in range(len(packed)):
            for bit in range(8):
                packed[position] ^= 1 << bit
                with suppress(CorruptMessage):
                    assert len(unpacked(form, codec, packed, MIB)) <= MIB
                packed[position] ^= 1 << bit

    @pytest.mark.parametrize("garbage", [b"", b"\x00", b"garbage", bytes(100), b"\xff" * 100])
    def test_garbage_is_corrupt(self, form: Form, codec: int, garbage: bytes) -> None:
        if codec == SNAPPY and garbage == b"\x00":
            assert unpacked(form, codec, garbage) == b""  # a block that says it is empty
            return
        with pytest.raises(CorruptMessage):
            unpacked(form, codec, garbage)

    def test_the_limit_is_exact(self, form: Form, codec: int) -> None:
        data = b"some text, " * 1000
        packed = form.compression.compress(codec, data)

        assert unpacked(form, codec, packed, len(data)) == data
        for limit in (len(data) - 1, 100, 1, 0, -5):
            with pytest.raises(CorruptMessage, match=f"more than {max(limit, 0)} bytes"):
                unpacked(form, codec, packed, limit)


@pytest.mark.parametrize(
    "stream",
    [
        XERIAL[:8],
        XERIAL[:15],
        XERIAL + b"\x00",
        XERIAL + b"\x00\x00\x00",
        XERIAL + b"\x00\x00\x00\x05",
        XERIAL + b"\xff\xff\xff\xff",
        XERIAL + b"\x7f\xff\xff\xff" + bytes(20),
        XERIAL + bytes(4),
        XERIAL + b"\x00\x00\x00\x01\x05",
    ],
)
def test_missing_blocks_are_corrupt(form: Form, stream: bytes) -> None:
    with pytest.raises(CorruptMessage):
        unpacked(form, SNAPPY, stream)


def test_unframed_snappy_of_librdkafka_is_read(form: Form) -> None:
    data = b"hello " * 1000

    assert unpacked(form, SNAPPY, bytes(cramjam.snappy.compress_raw(data))) == data


def test_an_unframed_block_of_four_gigabytes_is_refused_before_allocation(form: Form) -> None:
    before = forget_peak()
    with pytest.raises(CorruptMessage, match="more than"):
        unpacked(form, SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(20))

    assert peak_bytes() - before < MIB


def bombs() -> dict[int, list[bytes]]:
    """A few kilobytes (megabytes for snappy) that decompress to 100 MiB, and false size announcements."""
    block = bytes(cramjam.snappy.compress_raw(bytes(MIB)))
    zeros = bytes(100 * MIB)
    return {
        GZIP: [gzip.compress(zeros, 1), gzip.compress(b"x")[:-4] + b"\xff\xff\xff\x7f"],
        SNAPPY: [XERIAL + (len(block).to_bytes(4, "big") + block) * 100],
        LZ4: [bytes(cramjam.lz4.compress(zeros))],
        ZSTD: [bytes(cramjam.zstd.compress(zeros)), b"\x28\xb5\x2f\xfd\xe0" + b"\xff" * 8 + b"\x01\x00\x00"],
    }


BOMBS = bombs()


@pytest.mark.parametrize("codec", BOMBS)
def test_a_bomb_is_refused_in_bounded_memory(form: Form, codec: int) -> None:
    for bomb in BOMBS[codec]:
        data = batch(bomb, attributes=codec)
        for decode in (
            lambda limit, data=data: list(form.reader.RecordReader(data, max_decompressed_bytes=limit)),
            lambda limit, data=data: form.decode_columns.decode_columns(data, max_decompressed_bytes=limit),
        ):
            before = forget_peak()
            with pytest.raises(CorruptMessage):
                decode(8 * MIB)
            assert peak_bytes() - before < 24 * MIB


def test_many_bombs_within_the_limit_exceed_it_together(form: Form) -> None:
    """A fetch may have hundreds of batches, so a table of all of them is limited as a whole."""
    payload = record(value=bytes(4 * MIB))
    bomb = batch(bytes(cramjam.zstd.compress(payload)), attributes=ZSTD)
    data = bomb * 50

    before = forget_peak()
    with pytest.raises(CorruptMessage, match="more than"):
        form.decode_columns.decode_columns(data, max_decompressed_bytes=8 * MIB)
    assert peak_bytes() - before < 32 * MIB
    before = forget_peak()
    assert sum(len(each.value) for each in form.reader.RecordReader(data, max_decompressed_bytes=8 * MIB)) == 200 * MIB
    assert peak_bytes() - before < 32 * MIB


def test_a_claimed_count_of_two_billion_allocates_nothing(form: Form) -> None:
    data = batch(bytes(cramjam.zstd.compress(bytes(MIB))), 2_000_000_000, attributes=ZSTD)

    before = forget_peak()
    with pytest.raises(CorruptMessage, match="2000000000 records do not fit into 1048576 bytes"):
        form.decode_columns.decode_columns(data)
    assert peak_bytes() - before < 8 * MIB


def test_tiny_snappy_blocks_cost_no_more_than_their_bytes(form: Form) -> None:
    blocks = XERIAL + b"\x00\x00\x00\x01\x00" * 200_000

    before = forget_peak()
    assert unpacked(form, SNAPPY, blocks) == b""
    assert peak_bytes() - before < 4 * MIB


def test_a_limit_beyond_what_offsets_can_reach_is_lowered(form: Form) -> None:
    assert unpacked(form, ZSTD, form.compression.compress(ZSTD, b"x" * 100), 1 << 70) == b"x" * 100


def test_gzip_is_deflate_with_a_checksum(form: Form) -> None:
    packed = bytearray(form.compression.compress(GZIP, b"checked"))
    assert packed[-8:-4] == zlib.crc32(b"checked").to_bytes(4, "little")

    packed[-8] ^= 1
    with pytest.raises(CorruptMessage):
        unpacked(form, GZIP, packed)
