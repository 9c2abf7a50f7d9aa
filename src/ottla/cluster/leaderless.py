"""Why a partition has no leader, and what an operator can do about it. Pure rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.cluster.election import has_its_folder
from ottla.cluster.state import NO_NODE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ottla.cluster.state import BrokerInfo, ClusterView, PartitionState


class Leaderless(NamedTuple):
    topic: str
    partition: int
    isr: tuple[int, ...]
    replaced: tuple[int, ...]
    """Members of the ISR that are available, with another data folder than the one with which they joined it."""

    def __str__(self) -> str:
        at = f"{self.topic}-{self.partition}"
        last = f"{at} has no leader: its last in-sync replicas are on brokers {_listed(self.isr)}"
        if not self.replaced:
            return f"{last}, which are not available. Start one of them"
        came_back = f"{last}, and {_listed(self.replaced)} came back with another data folder, or an older copy of it"
        return (
            f"{came_back}. Restart it with the folder that it had, or accept the loss of acknowledged records: "
            f"ottla cluster elect {self.topic}:{self.partition} --unclean"
        )


def leaderless(view: ClusterView) -> Iterator[Leaderless]:
    """The partitions without a leader."""
    return (why_leaderless(state, view.brokers) for state in view.partitions.values() if _is_leaderless(state, view))


def why_leaderless(state: PartitionState, brokers: Mapping[int, BrokerInfo]) -> Leaderless:
    replaced = (node for node in state.isr if node in brokers and not has_its_folder(state, node, brokers[node].folder))
    return Leaderless(state.topic, state.partition, state.isr, tuple(replaced))


def _is_leaderless(state: PartitionState, view: ClusterView) -> bool:
    return state.leader == NO_NODE or state.leader not in view.brokers


def _listed(nodes: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, nodes))}]"
