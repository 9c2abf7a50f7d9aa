"""Builds valid and invalid batches byte by byte, and helpers for records."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import crc32c
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterable

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
MAX_INT32: Final = (1 << 31) - 1
MAX_INT64: Final = (1 << 63) - 1
MIN_INT64: Final = -(1 << 63)

Headers = list[tuple[str, bytes | None]]

headers = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3)
strings = st.none() | st.binary(max_size=300)


def varint(value: int) -> bytes:
    raw = (value << 1) ^ (value >> 63) if value >= 0 else ((-value - 1) << 1) | 1
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def string(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(  # noqa: PLR0913
    offset_delta: int = 0,
    timestamp_delta: int = 0,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: Iterable[tuple[bytes | None, bytes | None]] = (),
    header_count: int | None = None,
    attributes: int = 0,
    length: int | None = None,
) -> bytes:
    pairs = list(headers)
    body = bytes([attributes]) + varint(timestamp_delta) + varint(offset_delta) + string(key) + string(value)
    body += varint(len(pairs) if header_count is None else header_count)
    body += b"".join(string(name) + string(content) for name, content in pairs)
    return varint(len(body) if length is None else length) + body


def batch(payload: bytes = record(), count: int = 1, **fields: int) -> bytearray:
    """A batch with a valid checksum around any payload; any header field may be invalid."""
    named = {
        "base_offset": 0,
        "batch_length": 49 + len(payload),
        "leader_epoch": -1,
        "magic": 2,
        "attributes": 0,
        "last_offset_delta": max(count - 1, 0),
        "base_timestamp": 0,
        "max_timestamp": 0,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "record_count": count,
    }
    assert not set(fields) - set(named)
    named |= fields
    values = list(named.values())
    whole = bytearray(struct.pack(">qiibIhiqqqhii", *values[:4], 0, *values[4:]) + payload)
    return sealed(whole)


def sealed(whole: bytearray) -> bytearray:
    """The same bytes with a valid checksum, computed by a library that the codec does not use."""
    struct.pack_into(">I", whole, 17, crc32c.crc32c(bytes(whole[21:])))
    return whole


def fields(record: Any) -> tuple[Any, ...]:
    return (
        record.offset,
        record.timestamp,
        record.is_log_append_time,
        record.key,
        record.value,
        record.headers,
    )


def built(form: Any, rows: list[tuple[int, bytes | None, bytes | None, Headers]], codec: int = NONE) -> bytearray:
    """These rows in one batch from offset 0 on, built by Ottla's builder."""
    builder = form.encode.BatchBuilder(codec)
    for row in rows:
        assert builder.append(*row)
    return builder.build()


def is_released(source: bytearray) -> bool:
    """Whether the buffer is no longer exported: only then can it be resized."""
    try:
        source.append(0)
    except BufferError:
        return False
    return True


def peak_bytes() -> int:
    """The peak memory of the process since the last reset."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) << 10


def forget_peak() -> int:
    """Reset the peak memory; returns its new value."""
    with open("/proc/self/clear_refs", "w") as clear:
        clear.write("5")
    return peak_bytes()
