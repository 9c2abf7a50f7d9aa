"""What is known of a cluster at one moment, and what a broker may ask of it. Frozen values, in Kafka's words."""

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
"""In place of the id of a folder that was never noted and is gone: no folder has this id."""


class PartitionKey(NamedTuple):
    topic_id: TopicId
    partition: int


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A node that is there: it has a session with ZooKeeper."""

    id: int
    listeners: dict[str, Address]
    """By name; the last is the one that nodes use among themselves."""
    rack: str | None = None
    epoch: int = -1
    """Grows with every registration of whatever node (the transaction that created the node's entry)."""
    free_bytes: int = -1
    """What its disk had left when it registered; -1 if it did not say."""
    folder: str = ""
    """The id of its data folder; empty if it did not say."""
    registration: int = -1
    """The version of the node in the catalog that counts its starts; -1 if it did not say."""
    is_draining: bool = False
    """It is about to leave: it is given nothing new to lead or to hold."""
    offline: frozenset[PartitionKey] = frozenset()
    """Replicas on it whose log cannot be used."""

    @property
    def address(self) -> Address:
        """Where other nodes reach it, and clients that came in by a listener that it does not have."""
        return next(reversed(self.listeners.values()))


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Who holds a partition and who leads it, as ZooKeeper has it."""

    topic_id: TopicId
    topic: str
    partition: int
    replicas: tuple[int, ...]
    """The first of them is the preferred leader. While they are being changed: the new ones, then the old."""
    leader: int = NO_NODE
    leader_epoch: int = 0
    isr: tuple[int, ...] = ()
    version: int = 0
    """Of the node in ZooKeeper: a change to this state is one to this version, or it does not happen."""
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    folders: tuple[tuple[int, str], ...] = ()
    """The data folder with which a replica came to be in the ISR: with another one it is not in sync."""
    eligible: tuple[int, ...] = ()
    """Replicas that left the ISR when it fell below `min_isr` (KIP-966). Nothing is committed as long as there are any,
    so they have all that was, and may lead.
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
        """None if it is not known, as in a catalog of an older release."""
        return next((folder for each, folder in self.folders if each == node), None)

    @property
    def target(self) -> tuple[int, ...]:
        """Who is to hold it when no change is under way."""
        return tuple(node for node in self.replicas if node not in self.removing)


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Never changes: hold one for as long as its answers have to agree with each other."""

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
        """With these in place of what they were; None for one that is gone."""
        partitions = dict(self.partitions)
        for key, state in changed.items():
            if state is None:
                partitions.pop(key, None)
            else:
                partitions[key] = state
        return replace(self, partitions=partitions)


@dataclass(frozen=True, slots=True)
class Losses:
    """What a broker that starts may lack of what it had."""

    has_crashed: bool = False
    """It must not count as in sync where others are."""
    gone: frozenset[PartitionKey] = frozenset()
    """It had records of these partitions, and their folders are gone."""
    unsynced: frozenset[PartitionKey] = frozenset()
    """Acknowledged records of these partitions may be lost: they were not synced, or the folder is an older copy."""


NO_LOSSES: Final = Losses()


@dataclass(frozen=True, slots=True)
class ViewChange:
    """From one view to the next, and which partitions differ between them."""

    before: ClusterView
    after: ClusterView
    partitions: frozenset[PartitionKey] = frozenset()
    """Created, changed or gone."""


ViewListener: TypeAlias = Callable[[ViewChange], None]


class InvalidUpdateVersion(ApiError):
    """The partition's state has been changed meanwhile: wait for the view to show it, and decide again."""

    code = ErrorCode.INVALID_UPDATE_VERSION


class NotInSession(ApiError):
    """This node is cut off from ZooKeeper, so it can say nothing about the cluster."""

    code = ErrorCode.BROKER_NOT_AVAILABLE


class PreferredLeaderNotAvailable(ApiError):
    code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


class EligibleLeadersNotAvailable(ApiError):
    code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


class Cluster(Protocol):
    """What a broker sees of its cluster. Lives in the broker's event loop: callbacks are called there."""

    @property
    def node_id(self) -> int: ...

    @property
    def view(self) -> ClusterView:
        """What this node knows now. ZooKeeper may be ahead of it by what is under way."""

    @property
    def folder_id(self) -> str:
        """Of this node's data folder."""

    @property
    def is_fenced(self) -> bool:
        """Whether the session may have ended, by this node's own clock, so that another may lead already.

        Earlier than ZooKeeper can end it. Asked by whoever is about to act as a leader: a process that was
        stopped for long and goes on is fenced at once, before any event tells it so.
        """

    def listen(self, listener: ViewListener) -> None:
        """Tell `listener` of every later change of `view`, in order, once `view` shows it."""

    def on_session_lost(self, callback: Callable[[], None]) -> None:
        """Call back when this node becomes fenced: it must stop acting as a leader at once.

        It may lead again when the view, read anew in a new session, says so.
        """

    async def change_isr(
        self,
        at: PartitionKey,
        new_isr: Mapping[int, int],
        leader_epoch: int,
        expected_version: int,
        lost: Collection[int] = (),
    ) -> PartitionState:
        """The leader's own change of the ISR. When it returns, `view` shows it.

        Replicas that were seen to have `lost` committed records do not become eligible when they leave.

        Each member comes with the broker epoch in which it was seen to be in sync. One that would join and has
        registered again since is left out (KIP-903).

        NotLeaderOrFollower: this node does not lead, or not in this epoch. InvalidUpdateVersion: changed meanwhile.
        NotInSession: it is not known whether it happened; the view will tell.
        """

    async def leave_isr(self, at: PartitionKey, *, may_lack_records: bool) -> PartitionState:
        """This node's replica cannot be used: it leaves the ISR, if another in-sync replica is there, and does not
        lead. With `may_lack_records` it leaves even if the other members are away. When it returns, `view` shows it.
        """

    async def report_offline(self, replicas: Collection[PartitionKey]) -> None:
        """Tell the others which replicas of this node cannot be used."""

    async def alter_reassignments(self, targets: Mapping[PartitionKey, Sequence[int] | None]) -> None:
        """Begin to move partitions to these nodes; None takes a move back. The controller ends it.

        One partition's refusal is raised, so ask for one at a time where that matters.
        """

    async def elect_leader(self, at: PartitionKey, *, unclean: bool = False) -> PartitionState:
        """Let the preferred replica lead, or with `unclean`, if nobody leads, whoever is there."""
