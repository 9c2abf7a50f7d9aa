"""`ottla cluster reassign --throttle`: a throttled reassignment that removes its throttle."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from click.testing import CliRunner
from confluent_kafka import Producer

from ottla import Admin
from ottla.cli.clusters.throttling import FOLLOWER_RATE, FOLLOWERS, LEADER_RATE, LEADERS, throttled_topics
from ottla.cli.main import program
from ottla.client.admin.configs import ConfigResource
from ottla.client.view import PartitionView
from ottla.core.ids import TopicPartition

from .brokers import brokers, until
from .test_brokers import create_on

if TYPE_CHECKING:
    from pathlib import Path

RATE = 200_000
SIZE = 300_000


def test_the_throttle_applies_to_sources_and_destinations() -> None:
    held = PartitionView(leader=1, leader_epoch=0, replicas=(1, 2), isr=(1, 2))
    moves = {TopicPartition("t", 0): (2, 3), TopicPartition("t", 1): (4,)}

    assert throttled_topics(dict.fromkeys(moves, held), moves) == {
        "t": {LEADERS: "0:1,0:2,1:1,1:2", FOLLOWERS: "0:3,1:4"}
    }


def test_a_throttled_reassignment_obeys_the_rate_and_removes_the_throttle(zookeeper: str, tmp_path: Path) -> None:
    with brokers(zookeeper, tmp_path, 2) as nodes:
        servers = ",".join(node.bootstrap_servers for node in nodes)
        create_on(servers, "t", [1])
        producer = Producer({"bootstrap.servers": servers, "acks": "all"})
        for _ in range(30):
            producer.produce("t", bytes(SIZE // 30))
        assert producer.flush(20) == 0

        began_s = time.monotonic()
        arguments = ["cluster", "reassign", "t", "--to", "2", "--throttle", str(RATE), "-b", servers]
        done = CliRunner().invoke(program, arguments, catch_exceptions=False)
        taken_s = time.monotonic() - began_s

        assert done.exit_code == 0, done.output
        assert taken_s > (SIZE - RATE / 2) / RATE
        with Admin(servers) as admin:
            until(lambda: admin.describe_topic("t").partitions[0].replicas == (2,))
            for node in (1, 2):
                rates = admin.describe_configs(ConfigResource.broker(node))
                assert all(name not in rates or rates[name].is_default for name in (LEADER_RATE, FOLLOWER_RATE))
            until(
                lambda: all(
                    admin.describe_configs(ConfigResource.topic("t"))[n].is_default for n in (LEADERS, FOLLOWERS)
                )
            )
