"""DescribeLogDirs (35)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import ErrorCode
from ottla.wire import apis
from ottla.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)

from .making import batch as make_batch
from .making import create_topic, send_batch
from .raw_client import RawClient

if TYPE_CHECKING:
    import ottla
    from ottla.testing import EphemeralBroker


def asking(**partitions: tuple[int, ...]) -> DescribeLogDirsRequest:
    return DescribeLogDirsRequest(
        topics=tuple(DescribableLogDirTopic(topic=topic, partitions=some) for topic, some in partitions.items())
    )


def sizes_in(result: DescribeLogDirsResult) -> dict[tuple[str, int], int]:
    return {
        (topic.name, one.partition_index): one.partition_size for topic in result.topics for one in topic.partitions
    }


@pytest.mark.parametrize("version", range(apis.DESCRIBE_LOG_DIRS.first, apis.DESCRIBE_LOG_DIRS.last + 1))
def test_every_version_reports_the_size_of_a_partition(
    client: RawClient, broker: ottla.Broker, name: str, version: int
) -> None:
    create_topic(client, name, 2)
    batch = make_batch(b"v")
    send_batch(client, name, batch, partition=1)
    answer = client.ask(asking(**{name: (0, 1)}), version)

    assert answer.error_code == ErrorCode.NONE
    [result] = answer.results
    assert (result.error_code, result.log_dir) == (ErrorCode.NONE, str(broker.broker.data_dir.path))
    assert sizes_in(result) == {(name, 0): 0, (name, 1): len(batch)}
    assert not any(one.is_future_key or one.offset_lag for one in result.topics[0].partitions)
    if version >= 4:
        assert 0 < result.usable_bytes <= result.total_bytes


def test_null_describes_every_partition(client: RawClient, topic: str) -> None:
    [result] = client.ask(DescribeLogDirsRequest(topics=None)).results

    assert (topic, 0) in sizes_in(result)


def test_unknown_partitions_are_left_out_and_an_empty_list_describes_nothing(client: RawClient, topic: str) -> None:
    [result] = client.ask(asking(**{topic: (0, 5, -1), "no_such": (0,)})).results
    assert list(sizes_in(result)) == [(topic, 0)]

    [result] = client.ask(asking()).results
    assert result.topics == ()


def test_an_unopened_log_is_measured_too(ottla: EphemeralBroker) -> None:
    batch = make_batch(b"v" * 1000)
    with RawClient(ottla.bootstrap_servers) as client:
        create_topic(client, "orders")
        send_batch(client, "orders", batch)

    ottla.restart()
    with RawClient(ottla.bootstrap_servers) as client:
        [result] = client.ask(DescribeLogDirsRequest(topics=None)).results
        assert sizes_in(result) == {("orders", 0): len(batch)}
        assert not list(ottla.broker.topics.open_partitions())
