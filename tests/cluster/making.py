"""Brokers and partitions for tests of rules."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from ottla.cluster.state import BrokerInfo, PartitionState
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


def partition(replicas: Iterable[int] = (1, 2, 3), **known: Any) -> PartitionState:
    nodes = tuple(replicas)
    return PartitionState(TOPIC, "t", known.pop("partition", 0), nodes, **{"leader": nodes[0], "isr": nodes, **known})
