"""Cursors, partitioning, assignments and the metrics text."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as their_murmur2

from ottla.broker.metrics import Histogram
from ottla.http.config import HttpConfig
from ottla.http.consumer_groups.assignments import partitions_in
from ottla.http.monitoring.openmetrics import counter, gauge, histogram
from ottla.http.records.cursors import read_cursor, write_cursor
from ottla.http.records.partitioning import murmur2, next_partition, partition_of


@given(positions=st.dictionaries(st.integers(0, 2**31), st.integers(0, 2**63 - 1), min_size=1, max_size=5))
def test_a_cursor_reads_back_as_it_was_written(positions: dict[int, int]) -> None:
    assert read_cursor(write_cursor(positions)) == positions


@pytest.mark.parametrize(
    "text", ["", "0", "0:", ":1", "0:1,", "a:1", "0:-1", "0:1;1:2", "0:9999999999999999999", "٣:1"]
)
def test_an_invalid_cursor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"cursor|offset"):
        read_cursor(text)


@given(key=st.binary(max_size=50))
def test_a_key_is_partitioned_as_by_kafkas_producers(key: bytes) -> None:
    assert murmur2(key) == their_murmur2(key) & 0xFFFFFFFF
    assert partition_of(key, 7) == (their_murmur2(key) & 0x7FFFFFFF) % 7


def test_without_a_key_the_partitions_take_turns() -> None:
    assert {next_partition(3) for _ in range(3)} == {0, 1, 2}


def test_an_assignment_lists_its_partitions() -> None:
    topic = struct.pack(">h", 3) + b"abc" + struct.pack(">iii", 2, 0, 7)
    assert partitions_in(struct.pack(">hi", 1, 1) + topic + struct.pack(">i", -1)) == {"abc": [0, 7]}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        struct.pack(">hi", 0, 1),
        struct.pack(">hih", 0, 1, 3) + b"abc" + struct.pack(">i", 2**30),
        struct.pack(">hih", 0, 1, 1) + b"\xff" + struct.pack(">i", 0),
    ],
)
def test_an_invalid_assignment_lists_no_partitions(data: bytes) -> None:
    assert partitions_in(data) == {}


def test_metrics_are_written_as_openmetrics_wants_them() -> None:
    requests = counter("ottla_x", "What it is.")
    requests.add(3, api="Fetch", error='a "b"\\\n')
    assert requests.text() == (
        b'# TYPE ottla_x counter\n# HELP ottla_x What it is.\nottla_x_total{api="Fetch",error="a \\"b\\"\\\\\\n"} 3\n'
    )
    level = gauge("ottla_y", "It.")
    level.add(1)
    assert level.text().endswith(b"ottla_y 1\n")


def test_a_histogram_ends_with_the_total_count_and_sum() -> None:
    times = Histogram()
    times.add(2_000_000)
    times.add(100_000_000_000)
    family = histogram("ottla_z", "It.")
    family.add_histogram(times, api="x")
    lines = family.text().decode().splitlines()
    assert 'ottla_z_bucket{api="x",le="0.004194304"} 1' in lines
    assert lines[-3:] == [
        'ottla_z_bucket{api="x",le="+Inf"} 2',
        'ottla_z_sum{api="x"} 100.002',
        'ottla_z_count{api="x"} 2',
    ]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"port": -2}, "port must be"),
        ({"port": 70000}, "port must be"),
        ({"max_body_bytes": 0}, "max_body_bytes must be"),
        ({"cors_origins": ("app.example",)}, "cors_origins must be"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        HttpConfig(**settings)  # type: ignore[arg-type]
