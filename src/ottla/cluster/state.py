"""The state of a cluster, and the interface through which a broker uses it. Frozen values, with Kafka's terms."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from ottla.core.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.core.ids import Address, TopicId

NO_NODE: Final = -1
LOST_FOLDER: Final = "lost"
"""Replaces the id of a lost folder whose id was never stored: no folder has this id."""


class PartitionKey(NamedTuple):
    topic_id: TopicId
    partition: int


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A live node: it has a session with ZooKeeper."""

    id: int
    listeners: dict[str, Address]
    """Addresses by listener name; the last listener is the one used between nodes."""
    rack: str | None = None
    epoch: int = -1
    """Increases with every registration of any node (the transaction that created the node's entry)."""
    free_bytes: int = -1
    """Free disk space when it registered; -1 if unknown."""
    folder: str = ""
    """The id of its data folder; empty if unknown."""
    registration: int = -1
    """The version of the catalog node that counts its starts; -1 if unknown."""
    is_draining: bool = False
    """Whether it is shutting down, and gets no new leaderships or replicas."""
    offline: frozenset[PartitionKey] = frozenset()
    """Its replicas whose log is unusable."""

    @property
    def address(self) -> Address:
        """Its address for other nodes, and for clients of listeners that it does not have."""
        return next(reversed(self.listeners.values()))


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Replicas, leader and ISR of a partition, as stored in ZooKeeper."""

    topic_id: TopicId
    topic: str
    partition: int
    replicas: tuple[int, ...]
    """The replicas, the preferred leader first. During a reassignment: the new replicas, then the old ones."""
    leader: int = NO_NODE
    leader_epoch: int = 0
    isr: tuple[int, ...] = ()
    version: int = 0
    """The version of its ZooKeeper node: changes are conditional on it."""
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    folders: tuple[tuple[int, str], ...] = ()
    """The data folder with which each replica joined the ISR: with another one it is not in sync."""
    eligible: tuple[int, ...] = ()
    """Replicas that left the ISR when it fell below `min_isr` (KIP-966). Nothing is committed while there are any, so
    they have all committed records, and may become leader.
    """
    min_isr: int = 1
    """min.insync.replicas of the topic."""

    @property
    def key(self) -> PartitionKey:
        return PartitionKey(self.topic_id, self.partition)

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding or self.removing)

    def folder_of(self, node: int) -> str | None:
        """The folder of a replica in the ISR; None if it is unknown, as in a catalog of an older release."""
        return next((folder for each, folder in self.folders if each == node), None)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas after the reassignment in progress, if any."""
        return tuple(node for node in self.replicas if node not in self.removing)


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Immutable; keep a reference for consistent reads."""

    brokers: Mapping[int, BrokerInfo] = field(default_factory=dict)
    controller_id: int = NO_NODE
    partitions: Mapping[PartitionKey, PartitionState] = field(default_factory=dict)

    def partition(self, topic_id: TopicId, partition: int) -> PartitionState | None:
        return self.partitions.get(PartitionKey(topic_id, partition))

    def led_by(self, node_id: int) -> Iterator[PartitionState]:
        return (state for state in self.partitions.values() if state.leader == node_id)

    def held_by(self, node_id: int) -> Iterator[PartitionState]:
        return (state for state in self.partitions.values() if node_id in state.replicas)

    def with_partitions(self, changed: Mapping[PartitionKey, PartitionState | None]) -> ClusterView:
        """A copy with these changes; None for a deleted entry."""
        partitions = dict(self.partitions)
        for key, state in changed.items():
            if state is None:
                partitions.pop(key, None)
            else:
                partitions[key] = state
        return replace(self, partitions=partitions)


@dataclass(frozen=True, slots=True)
class Losses:
    """The records that a starting broker may lack."""

    has_crashed: bool = False
    """Whether it crashed, so that it must leave every ISR that has other members."""
    gone: frozenset[PartitionKey] = frozenset()
    """Partitions that had records, and whose folders are missing or whose logs were damaged."""
    unsynced: frozenset[PartitionKey] = frozenset()
    """Partitions with possibly lost acknowledged records: not synced, damaged, or in an older copy of the folder."""


NO_LOSSES: Final = Losses()


@dataclass(frozen=True, slots=True)
class ViewChange:
    """The old and the new view, and the partitions that differ between them."""

    before: ClusterView
    after: ClusterView
    partitions: frozenset[PartitionKey] = frozenset()
    """The partitions that were created, changed or deleted."""


ViewListener: TypeAlias = Callable[[ViewChange], None]


class InvalidUpdateVersion(ApiError):
    """The partition's state has changed: wait for the view to show it, and decide again."""

    code = ErrorCode.INVALID_UPDATE_VERSION


class NotInSession(ApiError):
    """This node has no ZooKeeper session, so it cannot change or confirm anything."""

    code = ErrorCode.BROKER_NOT_AVAILABLE


class PreferredLeaderNotAvailable(ApiError):
    code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


class EligibleLeadersNotAvailable(ApiError):
    code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


class Cluster(Protocol):
    """A broker's interface to its cluster. Lives in the broker's event loop: callbacks are called there."""

    @property
    def node_id(self) -> int: ...

    @property
    def view(self) -> ClusterView:
        """The current view of this node. ZooKeeper may be ahead of it."""

    @property
    def folder_id(self) -> str:
        """The id of this node's data folder."""

    @property
    def is_fenced(self) -> bool:
        """Whether the session may have expired, by this node's clock, so that another leader may exist.

        True before ZooKeeper can expire the session. Must be checked before every action as a leader: a process that
        was paused for long is fenced at once, before any event reports it.
        """

    def listen(self, listener: ViewListener) -> None:
        """Call `listener` for every later change of `view`, in order, once `view` shows it."""

    def on_session_lost(self, callback: Callable[[], None]) -> None:
        """Call back when this node becomes fenced: it must stop acting as a leader at once.

        It may lead again when the view, read again in a new session, names it as leader.
        """

    async def change_isr(
        self,
        at: PartitionKey,
        new_isr: Mapping[int, int],
        leader_epoch: int,
        expected_version: int,
        lost: Collection[int] = (),
    ) -> PartitionState:
        """Change the ISR as the leader. When it returns, `view` shows the change.

        Replicas with `lost` committed records do not become eligible when they leave.

        Each member comes with the broker epoch of its last fetch. A joining broker that has registered again
        since is left out (KIP-903).

        NotLeaderOrFollower: this node is not the leader, or not in this epoch. InvalidUpdateVersion: changed
        concurrently. NotInSession: the outcome is unknown; the view will show it.
        """

    async def leave_isr(self, at: PartitionKey, *, may_lack_records: bool) -> PartitionState:
        """Take this node's unusable replica out of service: it leaves the ISR if another in-sync replica is online, and
        does not lead. With `may_lack_records` it leaves even if the other members are offline. When this returns,
        `view` shows the change.
        """

    async def report_offline(self, replicas: Collection[PartitionKey]) -> None:
        """Publish the offline replicas of this node."""

    async def alter_reassignments(self, targets: Mapping[PartitionKey, Sequence[int] | None]) -> None:
        """Start reassignments to these nodes; None cancels one. The controller completes them.

        The first rejected partition raises: pass one at a time to get separate errors.
        """

    async def elect_leader(self, at: PartitionKey, *, unclean: bool = False) -> PartitionState:
        """Elect the preferred leader, or with `unclean`, if there is no leader, any live replica."""
