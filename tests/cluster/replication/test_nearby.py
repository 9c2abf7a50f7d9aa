"""The preferred read replica of a consumer."""

from __future__ import annotations

from ottla.cluster.replication.nearby import preferred_read_replica
from ottla.cluster.state import BrokerInfo

from .test_leading import leading

BROKERS = {node: BrokerInfo(node, {}, rack=rack) for node, rack in enumerate(("a", "b", "b"))}


def test_a_consumer_is_sent_to_the_most_advanced_replica_in_its_rack() -> None:
    rules = leading()
    rules.fetched(1, 8, 0, end_offset=10, now_ms=1)
    rules.fetched(2, 10, 0, end_offset=10, now_ms=1)

    assert preferred_read_replica(rules, BROKERS, "b", 7) == 2
    assert preferred_read_replica(rules, BROKERS, "b", 11) is None


def test_a_consumer_without_a_rack_or_in_the_leaders_reads_from_the_leader() -> None:
    rules = leading()
    rules.fetched(1, 10, 0, end_offset=10, now_ms=1)

    assert preferred_read_replica(rules, BROKERS, "a", 0) is None
    assert preferred_read_replica(rules, BROKERS, "", 0) is None
    assert preferred_read_replica(rules, BROKERS, "c", 0) is None


def test_a_replica_that_is_not_in_sync_is_never_preferred() -> None:
    rules = leading(isr=(0, 2))
    rules.fetched(1, 10, 0, end_offset=10, now_ms=1)

    assert preferred_read_replica(rules, BROKERS, "b", 0) is None
