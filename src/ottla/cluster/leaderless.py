"""Why a partition has no leader, and what an operator can do about it. Pure rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.cluster.election import has_its_folder
from ottla.cluster.state import NO_NODE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ottla.cluster.state import BrokerInfo, ClusterView, PartitionState


REPLICAS_AWAY: Final = "replicas_away"
DATA_FOLDER_REPLACED: Final = "data_folder_replaced"
LOG_OFFLINE: Final = "log_offline"


class Leaderless(NamedTuple):
    topic: str
    partition: int
    isr: tuple[int, ...]
    replaced: tuple[int, ...]
    """Live ISR members whose data folder differs from the one with which they joined."""
    offline: tuple[int, ...] = ()
    """Live ISR members with an offline log."""

    @property
    def reason(self) -> str:
        if self.replaced:
            return DATA_FOLDER_REPLACED
        return LOG_OFFLINE if self.offline else REPLICAS_AWAY

    def __str__(self) -> str:
        last = (
            f"{self.topic}-{self.partition} has no leader: its last in-sync replicas are on brokers {_listed(self.isr)}"
        )
        accept = f"accept the loss of acknowledged records: ottla cluster elect {self.topic}:{self.partition} --unclean"
        if self.replaced:
            return (
                f"{last}, and {_listed(self.replaced)} restarted with another data folder, or an older copy of it. "
                f"Restart it with its original folder, or {accept}"
            )
        if self.offline:
            return (
                f"{last}, and the log on {_listed(self.offline)} is offline because of disk errors (see the broker's "
                f"log). It is reopened when the disk works again. If its records are lost, {accept}"
            )
        return f"{last}, which are offline. Start one of them. If they are lost permanently, {accept}"


def leaderless(view: ClusterView) -> Iterator[Leaderless]:
    """The partitions without a leader."""
    return (why_leaderless(state, view.brokers) for state in view.partitions.values() if _is_leaderless(state, view))


def why_leaderless(state: PartitionState, brokers: Mapping[int, BrokerInfo]) -> Leaderless:
    last = (*state.isr, *state.eligible)
    replaced = (node for node in last if node in brokers and not has_its_folder(state, node, brokers[node].folder))
    offline = (node for node in last if node in brokers and state.key in brokers[node].offline)
    return Leaderless(state.topic, state.partition, last, tuple(replaced), tuple(offline))


def _is_leaderless(state: PartitionState, view: ClusterView) -> bool:
    return state.leader == NO_NODE or state.leader not in view.brokers


def _listed(nodes: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, nodes))}]"
