"""The record codec against aiokafka's compiled one, on the same batches of 1,000 records in the same run.

Both sides check the checksum of what they decode, as aiokafka's consumer does. Values are JSON-like text of which
compression makes a third to a quarter; with compression most of the time is the compressor's, the same library on both
sides (gzip: aiokafka uses Python's zlib). When encoding, aiokafka asks gzip and lz4 for their best, we for their usual,
as Kafka's own producer does.
"""

from __future__ import annotations

import random
import statistics
import time
from typing import TYPE_CHECKING, Any

from aiokafka.record._crecords.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from fuzz.forms import Form, load_compiled, load_uncompiled

from bench.report import Row, speed
from ottla.records.compression import Compression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

RECORDS = 1000
SIZES = {"100 B": 100, "1 KiB": 1024}
NOW = 1_700_000_000_000
ROUNDS = 31
SHORTEST_MEASURED_S = 0.004
UNIT = "M records/s"

Contenders = dict[str, "Callable[[], Any]"]


def values_of(size: int) -> list[bytes]:
    rng = random.Random(size)
    return [
        b"".join(
            b'{"user":%d,"page":"/item/%d"}' % (rng.randrange(10**6), rng.randrange(500)) for _ in range(size // 25)
        )[:size]
        for _ in range(RECORDS)
    ]


def rates(contenders: Contenders) -> dict[str, float]:
    """Million records per second of processor time, in turns, so that all meet the same weather; the median."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    repeats = {}
    for name, run in contenders.items():
        run()
        start = time.thread_time()
        run()
        repeats[name] = max(1, round(SHORTEST_MEASURED_S / (time.thread_time() - start)))
    for _ in range(ROUNDS):
        for name, run in contenders.items():
            start = time.thread_time()
            for _ in range(repeats[name]):
                run()
            times[name].append((time.thread_time() - start) / repeats[name])
    return {name: RECORDS / statistics.median(took) / 1e6 for name, took in times.items()}


def encoder(form: Form, codec: int, values: list[bytes]) -> Callable[[], bytearray]:
    keys = [b"key-%d" % number for number in range(RECORDS)]

    def encode() -> bytearray:
        builder = form.encode.BatchBuilder(codec)
        add = builder.append
        for key, value in zip(keys, values, strict=True):
            add(NOW, key, value)
        batch: bytearray = builder.build()
        return batch

    return encode


def their_encoder(codec: int, values: list[bytes]) -> Callable[[], bytearray]:
    keys = [b"key-%d" % number for number in range(RECORDS)]

    def encode() -> bytearray:
        builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 30)
        add = builder.append
        for number, (key, value) in enumerate(zip(keys, values, strict=True)):
            add(number, NOW, key, value, [])
        batch: bytearray = builder.build()
        return batch

    return encode


def consume(records: Iterable[Any]) -> None:
    for record in records:
        record.key, record.value, record.offset, record.timestamp  # noqa: B018


def checked(batch: bytes) -> DefaultRecordBatch:
    reader = DefaultRecordBatch(batch)
    assert reader.validate_crc()
    return reader


def compared(size: str, codec: Compression) -> Iterator[Row]:
    form = load_compiled()
    assert form is not None, "there is nothing to measure where the codec is not compiled"
    values = values_of(SIZES[size])
    batch = bytes(encoder(form, codec, values)())
    reader, to_arrow = form.reader.RecordReader, form.arrow.to_arrow
    rate = rates(
        {
            "consumed": lambda: consume(reader(batch)),
            "their consumed": lambda: consume(checked(batch)),
            "list": lambda: list(reader(batch)),
            "their list": lambda: list(checked(batch)),
            "their unchecked list": lambda: list(DefaultRecordBatch(batch)),
            "arrow": lambda: to_arrow(batch),
            "encode": encoder(form, codec, values),
            "their encode": their_encoder(codec, values),
        }
    )
    case = f"{size}, {codec.name.lower()}"
    consumed, theirs = rate["consumed"], rate["their consumed"]
    yield speed(
        f"decode to objects, {case}: iterated, key, value, offset and timestamp read",
        consumed,
        theirs,
        UNIT,
        at_least=1.5,
    )
    yield speed(f"decode to objects, {case}: list()", rate["list"], rate["their list"], UNIT, at_least=1.5)
    if codec == Compression.NONE:
        unchecked = rate["their unchecked list"]
        yield speed(f"decode to objects, {case}: list(), theirs without its checksum", rate["list"], unchecked, UNIT)
    yield speed(
        f"decode to an Arrow RecordBatch, {case}, against their consumed objects",
        rate["arrow"],
        theirs,
        UNIT,
        at_least=5,
    )
    yield speed(f"encode, {case}", rate["encode"], rate["their encode"], UNIT, at_least=1.5)


def uncompiled_rows() -> Iterator[Row]:
    """Plain Python on both sides of nothing: how much of the speed is the compiler's."""
    compiled, plain = load_compiled(), load_uncompiled()
    assert compiled is not None
    values = values_of(100)
    batch = bytes(encoder(compiled, Compression.NONE, values)())
    for what, run in {
        "decode to objects, list()": lambda form: lambda: list(form.reader.RecordReader(batch)),
        "decode to an Arrow RecordBatch": lambda form: lambda: form.arrow.to_arrow(batch),
        "encode": lambda form: encoder(form, Compression.NONE, values),
    }.items():
        rate = rates({"plain": run(plain), "compiled": run(compiled)})
        yield speed(f"uncompiled, for scale: {what}, 100 B, against compiled", rate["plain"], rate["compiled"], UNIT)


def rows() -> list[Row]:
    measured = [row for codec in Compression for size in SIZES for row in compared(size, codec)]
    return [*measured, *uncompiled_rows()]


def main() -> None:
    from bench.report import table  # noqa: PLC0415 - what a caller of rows() does itself

    print("\n".join(table(rows())))


if __name__ == "__main__":
    main()
