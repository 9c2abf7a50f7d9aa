"""Filters of a query that limit the read range."""

from datetime import UTC, datetime

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'ottla[spark]'")

from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from ottla.core.ids import TopicPartition
from ottla.spark.reader.filters import Wanted, wanted_by
from ottla.spark.reader.ranges import OffsetRange

TOPIC, PARTITION, OFFSET, TIMESTAMP = ("topic",), ("partition",), ("offset",), ("timestamp",)


def test_topics_and_partitions_are_chosen_by_equality_and_lists() -> None:
    wanted = wanted_by([In(TOPIC, ("a", "b")), EqualTo(PARTITION, 1), StringStartsWith(TOPIC, "a")])

    assert wanted.takes(TopicPartition("a", 1))
    assert not wanted.takes(TopicPartition("a", 0))
    assert not wanted.takes(TopicPartition("b", 1))


def test_partitions_are_bounded_by_comparisons() -> None:
    wanted = wanted_by([GreaterThan(PARTITION, 1), LessThanOrEqual(PARTITION, 3)])

    assert [each for each in range(6) if wanted.takes(TopicPartition("a", each))] == [2, 3]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([GreaterThan(OFFSET, 10), LessThan(OFFSET, 20)], (11, 20)),
        ([GreaterThanOrEqual(OFFSET, 10), LessThanOrEqual(OFFSET, 20)], (10, 21)),
        ([EqualTo(OFFSET, 15)], (15, 16)),
        ([In(OFFSET, (40, 30, 35))], (30, 41)),
        ([GreaterThan(OFFSET, 500)], (100, 100)),
        ([IsNotNull(OFFSET), Not(EqualTo(OFFSET, 3))], (0, 100)),
    ],
)
def test_offsets_narrow_a_range(filters: list[object], expected: tuple[int, int]) -> None:
    narrowed = wanted_by(filters).narrow(OffsetRange(TopicPartition("a", 0), 0, 100))  # type: ignore[arg-type]

    assert (narrowed.start, narrowed.end) == expected


def test_a_timestamp_limits_the_start_but_not_the_end() -> None:
    noon = datetime(2026, 1, 1, 12, 0, 0, 999, tzinfo=UTC)

    assert wanted_by([GreaterThan(TIMESTAMP, noon)]).from_time_ms == 1767268800000
    assert wanted_by([LessThan(TIMESTAMP, noon)]) == Wanted()


def test_unsupported_filters_are_ignored() -> None:
    assert wanted_by([EqualTo(("value",), b"x"), GreaterThan(("key",), 3)]) == Wanted()
