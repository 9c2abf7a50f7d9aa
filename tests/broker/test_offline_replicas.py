from __future__ import annotations

from ottla.broker.replication.offline import backoff_s
from ottla.cluster.nodes import broker_data, read_broker
from ottla.cluster.state import BrokerInfo, PartitionKey
from ottla.core.ids import Address, TopicId


def test_opening_a_failed_log_is_retried_with_backoff() -> None:
    waits = [backoff_s(0.2, attempts) for attempts in (1, 2, 3, 100)]

    assert waits == [0.2, 0.4, 0.8, 30.0]


def test_a_nodes_registration_lists_its_offline_replicas() -> None:
    listeners = {"PLAINTEXT": Address("h", 9092)}
    offline = frozenset({PartitionKey(TopicId.random(), 7), PartitionKey(TopicId.random(), 0)})
    broker = BrokerInfo(1, listeners, "a", 5, 100, offline=offline)

    assert read_broker(1, broker_data(broker), 5, is_draining=False) == broker
