"""Topics of different shapes for `bench/spark.py`: small and large records, many partitions, skew, many columns."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from itertools import count as numbers
from typing import Final

import pyarrow as pa

from ottla import Admin, Producer

SCALE: Final = {"full": 1, "short": 100}.get(os.environ.get("BENCH_SPARK", ""), 10)
_CHUNK_ROWS: Final = 10_000
_CHUNK_BYTES: Final = 8 << 20
_COLUMNS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    name: str
    size: int
    count: int
    partitions: int = 4
    is_skewed: bool = False
    """Whether nine of ten records are in the first partition."""
    is_json: bool = False
    """Whether values are JSON with fifty fields, which readers parse."""

    @property
    def topic(self) -> str:
        return f"records-{self.name.replace(' ', '-')}"

    @property
    def columns(self) -> str:
        """Of the JSON, as Spark writes a schema."""
        return ", ".join(f"c{number} bigint" for number in range(_COLUMNS))

    def partition_of(self, chunk: int) -> int:
        if self.is_skewed:
            return chunk % self.partitions if chunk % 10 == 0 else 0
        return chunk % self.partitions

    def values(self, rows: int) -> list[bytes]:
        if self.is_json:
            return [
                json.dumps({f"c{number}": row * number for number in range(_COLUMNS)}).encode() for row in range(rows)
            ]
        return [os.urandom(self.size) for _ in range(rows)]


PLAIN: Final = (
    Shape(name="100 B", size=100, count=10_000_000 // SCALE),
    Shape(name="1 KiB", size=1024, count=1_000_000 // SCALE),
)
SPECIAL: Final = (
    Shape(name="200 partitions", size=100, count=5_000_000 // SCALE, partitions=200),
    Shape(name="50 columns", size=700, count=500_000 // SCALE, is_json=True),
    Shape(name="1 MB records", size=1_000_000, count=2_000 // SCALE),
    Shape(name="skew", size=100, count=10_000_000 // SCALE, is_skewed=True),
)


def fill(servers: str, shape: Shape) -> None:
    """Create the topic and write its records, in chunks that go to one partition each."""
    with Admin(servers) as admin:
        admin.create_topic(shape.topic, partitions=shape.partitions)
    rows = max(1, min(_CHUNK_ROWS, _CHUNK_BYTES // shape.size, shape.count // shape.partitions))
    values = pa.array(shape.values(rows), pa.binary())
    keys = pa.array([b"%016d" % number for number in range(rows)], pa.binary())
    left = shape.count
    with Producer(servers) as producer:
        for chunk in numbers():
            if left <= 0:
                break
            taken = min(rows, left)
            left -= taken
            partitions = pa.repeat(pa.scalar(shape.partition_of(chunk), pa.int32()), taken)
            columns = [keys.slice(0, taken), values.slice(0, taken), partitions]
            producer.send_arrow(shape.topic, pa.record_batch(columns, ["key", "value", "partition"]))
            producer.flush()
