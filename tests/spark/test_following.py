"""Partitions added and removed while a query runs."""

from dataclasses import dataclass, field

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'ottla[spark]'")

from ottla.core.ids import TopicPartition
from ottla.spark.errors import DataLoss
from ottla.spark.reader.following import Following
from ottla.spark.reader.options import parse_source

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
OLD, NEW = bytes(15) + b"\1", bytes(15) + b"\2"


@dataclass
class FakeCluster:
    there: dict[TopicPartition, bytes]
    begins: dict[TopicPartition, int] = field(default_factory=dict)

    def existing(self, _: object) -> dict[TopicPartition, bytes]:
        return dict(self.there)

    def earliest(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {at: self.begins.get(at, 0) for at in partitions}


def following(cluster: FakeCluster, *, is_strict: bool = True) -> Following:
    options = {"kafka.bootstrap.servers": "x", "subscribe": "a", "failOnDataLoss": str(is_strict).lower()}
    return Following(cluster, parse_source(options, is_stream=True))  # type: ignore[arg-type]


def test_a_partition_that_is_added_is_read_from_its_beginning() -> None:
    cluster = FakeCluster({A0: OLD})
    query = following(cluster)
    query.look({A0: 5})
    cluster.there[A1] = OLD

    query.look({A0: 5})

    assert query.starts({A0: 5}) == {A0: 5, A1: 0}


def test_a_partition_that_is_added_and_has_lost_records_already_is_a_loss() -> None:
    query = following(FakeCluster({A0: OLD, A1: OLD}, begins={A1: 3}))

    with pytest.raises(DataLoss, match="a-1 is new and already begins at 3 instead of 0"):
        query.look({A0: 5})


def test_a_re_created_topic_is_detected_by_its_id() -> None:
    cluster = FakeCluster({A0: OLD})
    query = following(cluster)
    query.look({A0: 5})
    cluster.there[A0] = NEW

    with pytest.raises(DataLoss, match=r"a was deleted and re-created; the offsets up to 5 of a-0 .*failOnDataLoss"):
        query.look({A0: 5})


def test_a_re_created_topic_is_read_from_the_beginning_if_loss_is_allowed() -> None:
    cluster = FakeCluster({A0: OLD})
    query = following(cluster, is_strict=False)
    query.look({A0: 5})
    cluster.there[A0] = NEW

    query.look({A0: 5})
    assert query.starts({A0: 5}) == {A0: 0}
    # The micro-batch up to 9 of the new topic is done, and the next one goes on there.
    query.look({A0: 9})
    assert query.starts({A0: 9}) == {A0: 9}


def test_a_topic_without_an_id_counts_as_the_same() -> None:
    cluster = FakeCluster({A0: bytes(16)})
    query = following(cluster)
    query.look({A0: 5})
    query.look({A0: 5})

    assert query.starts({A0: 5}) == {A0: 5}


def test_a_removed_partition_is_a_data_loss_or_skipped() -> None:
    cluster = FakeCluster({A0: OLD})

    with pytest.raises(DataLoss, match=r"a-1 \(read up to offset 7\) were read before and no longer exist"):
        following(cluster).look({A0: 5, A1: 7})
    assert following(cluster, is_strict=False).look({A0: 5, A1: 7}) == {A0: OLD}
