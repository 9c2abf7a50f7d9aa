"""Brokers and partitions for tests of rules."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ottla.cluster.state import BrokerInfo, PartitionKey, PartitionState
from ottla.core.ids import Address, TopicId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TOPIC = TopicId(uuid.UUID(int=7))


def brokers(
    *ids: int,
    racks: Mapping[int, str] | None = None,
    draining: Iterable[int] = (),
    folders: Mapping[int, str] | None = None,
) -> dict[int, BrokerInfo]:
    leaving = set(draining)
    return {
        each: BrokerInfo(
            each,
            {"PLAINTEXT": Address("h", each)},
            (racks or {}).get(each),
            folder=(folders or {}).get(each, ""),
            is_draining=each in leaving,
        )
        for each in ids
    }


def offline_at(node: int, there: Mapping[int, BrokerInfo]) -> dict[int, BrokerInfo]:
    """The view with the replica of partition 0 on this node offline."""
    return {**there, node: replace(there[node], offline=frozenset({PartitionKey(TOPIC, 0)}))}


def partition(replicas: Iterable[int] = (1, 2, 3), **known: Any) -> PartitionState:
    nodes = tuple(replicas)
    return PartitionState(TOPIC, "t", known.pop("partition", 0), nodes, **{"leader": nodes[0], "isr": nodes, **known})
