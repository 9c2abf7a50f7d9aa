"""A re-created topic inherits nothing from its predecessor: real processes, a real ZooKeeper."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from tests.broker.raw_client import RawClient

from ottla.client.blocking.admin import Admin
from ottla.core.ids import TopicPartition
from ottla.storage.folder.checkpoints import HIGH_WATERMARKS, read_offsets
from ottla.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

from .copies import Copies
from .processes import Processes, Topology, until

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.cluster.server import ZooKeeperServer

    from .processes import Node

PATIENT = (
    "cluster.session_timeout_ms=20000",
    "replication.replica_lag_time_max_ms=30000",
    "replication.high_watermark_checkpoint_interval_ms=200",
)


def _size(node: Node, topic: str) -> int:
    wanted = DescribableLogDirTopic(topic=topic, partitions=(0,))
    with RawClient(node.address) as client:
        [folder] = client.ask(DescribeLogDirsRequest(topics=(wanted,)), version=4).results
    return sum(part.partition_size for each in folder.topics for part in each.partitions)


def _followers_high_watermark(node: Node, topic: str) -> int:
    """A consumer that names a rack may read from a follower (KIP-392)."""
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, rack_id="near", topics=(FetchTopic(topic=topic, partitions=(wanted,)),)
    )
    with RawClient(node.address) as client:
        high_watermark: int = client.ask(request, version=12).responses[0].partitions[0].high_watermark
    return high_watermark


@pytest.mark.timeout(180)
def test_a_follower_does_not_inherit_the_high_watermark_of_a_deleted_topic(
    zookeeper_server: ZooKeeperServer, tmp_path: Path
) -> None:
    zookeeper = f"{zookeeper_server.address}/again-{os.getpid()}"
    with Processes(tmp_path / "cluster", zookeeper, topology=Topology(settings=PATIENT)) as processes:
        follower, at = processes.nodes[2], TopicPartition("again", 0)
        Copies(processes, "again", [1, 2, 3]).write(50)
        until(lambda: read_offsets(follower.folder / HIGH_WATERMARKS).get(at) == 50, "a checkpoint")
        with Admin(processes.servers) as admin:
            admin.delete_topic("again")
        until(lambda: not (follower.folder / "again-0").exists(), "the topic to be gone")

        Copies(processes, "again", [1, 2, 3])
        until((processes.nodes[3].folder / "again-0").exists, "all replicas to be there")
        # It stays in the ISR during this test, so that nothing is committed.
        processes.nodes[3].freeze()
        producer = Producer({"bootstrap.servers": processes.nodes[1].address, "acks": 1})
        producer.produce("again", b"not committed", partition=0)
        assert producer.flush(30) == 0
        until(lambda: _size(follower, "again") > 0, "the record to be copied")

        assert _followers_high_watermark(follower, "again") == 0
