"""Failures that were not awaited are reported once, together."""

from __future__ import annotations

from ottla.client.producer.batch import Batch, Refused
from ottla.client.producer.failures import UnseenFailures

from .making import LOST, Partition


def failed(records: int, partition: int = 0) -> Batch:
    batch = Partition().seal(*[b"v"] * records)
    batch.partition = partition
    batch.finish(Refused(LOST))
    return batch


def test_without_failures_nothing_is_raised() -> None:
    assert UnseenFailures().take() is None


def test_the_error_says_how_many_where_and_why() -> None:
    failures = UnseenFailures()
    for partition in (2, 0, 2):
        failures.add(failed(3, partition))

    told = failures.take()

    assert str(told) == f"could not deliver 9 records to t-0, t-2: {LOST}"
    assert told is not None
    assert told.__cause__ is LOST
    assert failures.take() is None


def test_many_partitions_are_not_all_named() -> None:
    failures = UnseenFailures()
    for partition in range(10):
        failures.add(failed(1, partition))

    assert "t-0, t-1, t-2 and 7 more" in str(failures.take())


def test_awaited_records_do_not_count() -> None:
    failures = UnseenFailures()
    batch = failed(2)
    batch.observe(0)
    failures.add(batch)
    batch.observe(1)

    assert failures.take() is None


def test_without_flush_only_a_count_of_failures_is_kept() -> None:
    failures = UnseenFailures()
    for _ in range(3000):
        failures.add(failed(1))

    assert len(failures._batches) == 1000
    assert "3000 records" in str(failures.take())
