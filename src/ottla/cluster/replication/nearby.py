"""From which replica a consumer should read (KIP-392): one in its own rack that has what it wants."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.cluster.replication.leading import Leading
    from ottla.cluster.state import BrokerInfo


def preferred_read_replica(leading: Leading, brokers: Mapping[int, BrokerInfo], rack: str, offset: int) -> int | None:
    """The one in sync in this rack that is furthest; None if the leader is as good."""
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
