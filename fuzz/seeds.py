"""Writes the first inputs of the corpus: small, valid, and one for each thing that a batch can have."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from fuzz.__main__ import CORPUS
from ottla.records.compression import Compression, compress
from ottla.records.control import EndMarker, build_end_marker
from ottla.records.encode import BatchBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLAIN = b"\x00"
_RAW = b"\x01"
_WITH_CONTROL = b"\x02"
_FROM_THE_MIDDLE = b"\x04"


def _batch(compression: int = Compression.NONE, **fields: int) -> bytes:
    builder = BatchBuilder(compression)
    builder.append(1000, b"key", b"value", [("name", b"1"), ("nämé", None)])
    builder.append(990, None, b"v" * 200)
    builder.append(1 << 40, b"", None)
    return bytes(builder.build(**fields))


def batches() -> Iterator[tuple[str, bytes]]:
    for compression in Compression:
        yield f"{compression.name.lower()}", _PLAIN + _batch(compression)
    yield "raw", _RAW + _batch()
    yield "middle", _FROM_THE_MIDDLE + _batch(base_offset=5)
    yield "producer", _PLAIN + _batch(producer_id=7, producer_epoch=1, base_sequence=2147483646)
    yield "transactional", _PLAIN + _batch(producer_id=7, producer_epoch=1, is_transactional=True)
    yield "control", _WITH_CONTROL + bytes(build_end_marker(EndMarker(True, 3), 7, 1, 1000))  # noqa: FBT003
    yield "several", _PLAIN + _batch() + _batch(Compression.LZ4, base_offset=3) + _batch(base_offset=9)
    yield "empty", _PLAIN
    stamped = bytearray(_batch())
    stamped[22] |= 0x08
    yield "log-append-time", _PLAIN + bytes(stamped)
    old = bytearray(_batch())
    old[16] = 1
    yield "format-1", _RAW + bytes(old)


def compressed() -> Iterator[tuple[str, bytes]]:
    for compression in Compression:
        for name, data in (("text", b"hello, " * 50), ("nothing", b""), ("zeros", bytes(100_000))):
            packed = bytes([compression]) + bytes(compress(compression, data))
            if len(packed) < 4096:
                yield f"{compression.name.lower()}-{name}", packed
    yield "snappy-bare", b"\x02" + bytes([5, 16]) + b"hello"


def built() -> Iterator[tuple[str, bytes]]:
    record = bytes([3, 5, 4, 0x43]) + (1000).to_bytes(8, "big") + b"keyvalue"
    for compression in Compression:
        yield compression.name.lower(), bytes([compression, 12]) + record * 3
    yield "full", bytes([0, 7]) + record * 9
    yield "far-apart", bytes([0, 12, 0, 0, 0, 0]) + b"\x7f" + b"\xff" * 7 + bytes(4) + b"\x80" + bytes(7)


def tables() -> Iterator[tuple[str, bytes]]:
    starts = struct.pack("=5i", 0, 1, 1, 3, 6)
    times = struct.pack("=4q", 1000, 990, 1 << 40, 5)
    for name, rows, first, pieces in (
        ("plain", 4, 0, (b"", starts, starts, b"", b"", b"abbccc", times)),
        ("nulls", 4, 0, (b"\x0d", starts, starts, b"", b"", b"abbccc", times)),
        ("sliced", 2, 2, (b"\x0d", starts, starts, b"", b"", b"abbccc", times)),
        ("headers", 4, 0, (b"\x0d", starts, starts, struct.pack("=5i", 0, 1, 1, 3, 4), starts, b"abbccc", times)),
        ("outside", 4, 0, (b"", starts, starts, b"", b"", b"abb", times)),
    ):
        yield name, bytes([rows, first, 0, *map(len, pieces), 0, 0, 0]) + b"".join(pieces)


def main() -> None:
    seeds = {
        "reader": batches,
        "columns": batches,
        "batch": batches,
        "compression": compressed,
        "builder": built,
        "table": tables,
    }
    for target, inputs in seeds.items():
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in inputs():
            (folder / f"seed-{name}").write_bytes(data)


if __name__ == "__main__":
    main()
