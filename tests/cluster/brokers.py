"""Whole brokers of a cluster, each in a thread of the test's process."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from ottla.broker.config import BrokerConfig
from ottla.broker.embedded import EmbeddedBroker
from ottla.broker.settings import Settings
from ottla.cluster.config import ClusterConfig
from ottla.net.config import NetConfig
from ottla.transactions.config import TransactionConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_PATIENCE_S = 20.0


def settings(zookeeper: str, node_id: int, rack: str = "") -> Settings:
    return Settings(
        broker=BrokerConfig(node_id=node_id, offsets_topic_partitions=3),
        net=NetConfig(port=0),
        transactions=TransactionConfig(state_topic_partitions=3),
        cluster=ClusterConfig(
            zookeeper=zookeeper, rack=rack, default_replication_factor=2, internal_replication_factor=2
        ),
    )


@contextmanager
def brokers(zookeeper: str, folder: Path, count: int) -> Iterator[list[EmbeddedBroker]]:
    with ExitStack() as stack:
        started = [
            stack.enter_context(EmbeddedBroker(folder / str(node_id), settings(zookeeper, node_id, f"rack-{node_id}")))
            for node_id in range(1, count + 1)
        ]
        until(lambda: all(len(each.broker.topology.node_ids) == count for each in started))
        yield started


def until(holds: Callable[[], object]) -> None:
    """Poll for a condition that other threads bring about."""
    deadline = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "the condition did not hold in time"
        time.sleep(0.02)
