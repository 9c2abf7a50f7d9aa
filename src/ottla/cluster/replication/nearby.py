"""Fetching from the closest replica (KIP-392): an in-sync replica in the consumer's rack that has the offset."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.cluster.replication.leading import Leading
    from ottla.cluster.state import BrokerInfo


def preferred_read_replica(leading: Leading, brokers: Mapping[int, BrokerInfo], rack: str, offset: int) -> int | None:
    """The most advanced in-sync replica in this rack; None to read from the leader."""
    if not rack or _rack_of(brokers, leading.node_id) == rack:
        return None
    there = [
        (follower.end_offset, -node)
        for node, follower in leading.followers.items()
        if node in leading.isr
        and _rack_of(brokers, node) == rack
        and max(follower.start_offset, 0) <= offset <= follower.end_offset
    ]
    return -max(there)[1] if there else None


def _rack_of(brokers: Mapping[int, BrokerInfo], node: int) -> str | None:
    broker = brokers.get(node)
    return None if broker is None else broker.rack
