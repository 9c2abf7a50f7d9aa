"""The iteration order of Java's HashMap and HashSet.

Among equally good assignments, Java's assignors choose by this order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ottla.core.ids import TopicPartition

T = TypeVar("T")

_SMALLEST_TABLE: Final = 16


def in_java_order(values: Sequence[T], hash_of: Callable[[T], int]) -> list[T]:
    """Sort `values`, given in insertion order, which is kept within a bucket."""
    last_bucket = _table_size(len(values)) - 1

    def bucket(value: T) -> int:
        code = hash_of(value)
        return (code ^ (code >> 16)) & last_bucket

    return sorted(values, key=bucket)


def hash_of_text(text: str) -> int:
    """Java's String.hashCode, as unsigned 32 bits."""
    code = 0
    for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"):
        code = (31 * code + unit) & 0xFFFFFFFF
    return code


def hash_of_partition(at: TopicPartition) -> int:
    return (31 * (31 + at.partition) + hash_of_text(at.topic)) & 0xFFFFFFFF


def _table_size(entries: int) -> int:
    size = _SMALLEST_TABLE
    while entries * 4 > size * 3:
        size *= 2
    return size
