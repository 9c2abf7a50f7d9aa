"""Read ranges derived from a query's filters. Pure rules.

Spark still applies every filter to the rows: here filters only reduce what is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.core.ids import TopicPartition
    from ottla.spark.reader.ranges import OffsetRange


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the filters require of every row."""

    topics: frozenset[str] | None = None
    topic_prefix: str = ""
    partitions: frozenset[int] | None = None
    first_partition: int = 0
    last_partition: int = (1 << 31) - 1
    first_offset: int = 0
    end_offset: int = (1 << 63) - 1
    from_time_ms: int | None = None

    def takes(self, at: TopicPartition) -> bool:
        return (
            (self.topics is None or at.topic in self.topics)
            and at.topic.startswith(self.topic_prefix)
            and (self.partitions is None or at.partition in self.partitions)
            and self.first_partition <= at.partition <= self.last_partition
        )

    def narrow(self, whole: OffsetRange) -> OffsetRange:
        """The part of the range that can contain matching rows; it may be empty."""
        start = max(whole.start, min(self.first_offset, whole.end))
        return replace(whole, start=start, end=max(start, min(whole.end, self.end_offset)))


def wanted_by(filters: Iterable[Filter]) -> Wanted:
    wanted = Wanted()
    for each in filters:
        wanted = _narrowed(wanted, each)
    return wanted


def _narrowed(wanted: Wanted, each: Filter) -> Wanted:
    column = getattr(each, "attribute", ())
    if isinstance(each, In):
        return _among(wanted, column, frozenset(each.value))
    if isinstance(each, EqualTo | EqualNullSafe):
        if column in (("topic",), ("partition",)):
            return _among(wanted, column, frozenset([each.value]))
        return _at_most(_at_least(wanted, column, each.value), column, each.value)
    if isinstance(each, GreaterThan | GreaterThanOrEqual):
        return _at_least(wanted, column, each.value, is_exclusive=isinstance(each, GreaterThan))
    if isinstance(each, LessThan | LessThanOrEqual):
        return _at_most(wanted, column, each.value, is_exclusive=isinstance(each, LessThan))
    if isinstance(each, StringStartsWith) and column == ("topic",) and each.value.startswith(wanted.topic_prefix):
        return replace(wanted, topic_prefix=each.value)
    return wanted


def _among(wanted: Wanted, column: tuple[str, ...], values: frozenset[Any]) -> Wanted:
    if column == ("topic",):
        return replace(wanted, topics=values if wanted.topics is None else wanted.topics & values)
    if column == ("partition",):
        return replace(wanted, partitions=values if wanted.partitions is None else wanted.partitions & values)
    if column == ("offset",) and values and all(isinstance(value, int) for value in values):
        return _at_most(_at_least(wanted, column, min(values)), column, max(values))
    return wanted


def _at_least(wanted: Wanted, column: tuple[str, ...], value: object, *, is_exclusive: bool = False) -> Wanted:
    if column == ("timestamp",) and isinstance(value, datetime):
        # Rounded down, and never exclusive: an additional row does no harm.
        time_ms = _epoch_ms(value)
        known = wanted.from_time_ms
        return replace(wanted, from_time_ms=time_ms if known is None else max(known, time_ms))
    if not isinstance(value, int):
        return wanted
    least = value + is_exclusive
    if column == ("offset",):
        return replace(wanted, first_offset=max(wanted.first_offset, least))
    if column == ("partition",):
        return replace(wanted, first_partition=max(wanted.first_partition, least))
    return wanted


def _at_most(wanted: Wanted, column: tuple[str, ...], value: object, *, is_exclusive: bool = False) -> Wanted:
    # Timestamps are not ordered, so an upper bound of the time does not bound the offsets.
    if not isinstance(value, int):
        return wanted
    most = value - is_exclusive
    if column == ("offset",):
        return replace(wanted, end_offset=min(wanted.end_offset, most + 1))
    if column == ("partition",):
        return replace(wanted, last_partition=min(wanted.last_partition, most))
    return wanted


def _epoch_ms(time: datetime) -> int:
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
