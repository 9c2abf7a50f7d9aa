"""The leader's view of its replicas: the progress of each, the ISR, and the high watermark.

A record is committed once every in-sync replica has it. It then survives the leader, because only an in-sync replica
may become the next leader. Invariants:

- The high watermark never goes back, and never exceeds the end offset of any ISR member. While an ISR change is
  pending, both old and new members count (the "maximal" ISR): it is unknown from which of them the next leader is
  elected.
- A replica joins only when it has all committed records: those below the high watermark, which may lag right
  after an election, and those that the log had when this leader's epoch began. Its log must also start no earlier than
  the leader's: otherwise records removed by DeleteRecords would come back.
- A replica joins by fetches of its current registration: a restarted broker may have lost records.
- A replica whose log ends below an offset up to which this leader has removed tombstones starts over, unless it has
  copied all of its log from this leader: otherwise it would keep records that were deleted.
- A replica that is about to join counts like a member: otherwise a close follower would never join under load.
- Nothing is committed while there are eligible replicas, which left the ISR when it fell below min.insync.replicas: so
  they have all committed records, and may become leader if the rest of the ISR is lost (KIP-966). DeleteRecords waits
  for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.cluster.state import PartitionState

NO_OFFSET: Final = -1
NO_EPOCH: Final = -1
_NEVER_MS: Final = -(1 << 62)


class Follower:
    """A follower's progress, as seen in its fetches."""

    __slots__ = ("broker_epoch", "caught_up_ms", "end_offset", "fetched_ms", "leader_end_then", "start_offset")

    def __init__(self, caught_up_ms: int) -> None:
        self.end_offset = NO_OFFSET
        self.start_offset = NO_OFFSET
        self.caught_up_ms = caught_up_ms
        """The last time at which it was known to be caught up."""
        self.fetched_ms = _NEVER_MS
        self.leader_end_then = 0
        self.broker_epoch = NO_EPOCH
        """The broker epoch of its last fetch."""

    def fetched(self, end_offset: int, start_offset: int, leader_end: int, now_ms: int) -> None:
        """Record a fetch from `end_offset`: the follower has all records below it."""
        if end_offset >= leader_end:
            self.caught_up_ms = now_ms
        elif end_offset >= self.leader_end_then:
            # Not the current end offset, but the one at its previous fetch.
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.end_offset = end_offset
        self.start_offset = start_offset
        self.leader_end_then = leader_end
        self.fetched_ms = now_ms

    def is_caught_up(self, leader_end: int, now_ms: int, lag_ms: int) -> bool:
        return self.end_offset == leader_end or now_ms - self.caught_up_ms <= lag_ms


class Leading:
    """One partition in one leader epoch. `end_offset` is always that of the leader's log."""

    def __init__(
        self, state: PartitionState, end_offset: int, high_watermark: int, *, lag_ms: int, now_ms: int
    ) -> None:
        self.node_id = state.leader
        self.leader_epoch = state.leader_epoch
        self.epoch_start = end_offset
        self.high_watermark = min(high_watermark, end_offset)
        self.replicas = state.replicas
        self.isr = frozenset(state.isr)
        self.eligible = frozenset(state.eligible)
        self.version = state.version
        self.proposed: frozenset[int] | None = None
        """The pending ISR change, with unknown outcome."""
        self.present: Mapping[int, int] = {}
        """The broker epochs of the registered brokers, which may join."""
        self.copied_from_start: dict[int, tuple[int, int]] = {}
        """Replicas that have copied their whole log from this leader: the broker epoch in which they began, and up to
        which offset tombstones were removed then.
        """
        self._lag_ms = lag_ms
        self.followers = {
            node: Follower(now_ms if node in self.isr else _NEVER_MS) for node in state.replicas if node != self.node_id
        }

    @property
    def maximal_isr(self) -> frozenset[int]:
        return self.isr if self.proposed is None else self.isr | self.proposed

    @property
    def is_settled(self) -> bool:
        """Whether everything that former leaders may have committed is known to be committed (KIP-207)."""
        return self.high_watermark >= self.epoch_start

    @property
    def is_complete(self) -> bool:
        """Whether all replicas are in the ISR, and so have all records below the high watermark."""
        return self.isr.issuperset(self.replicas)

    def has_enough(self, min_insync_replicas: int) -> bool:
        return len(self.isr) >= min(min_insync_replicas, len(self.replicas))

    # Events

    def is_stale(self, node: int, broker_epoch: int) -> bool:
        """Whether this broker has registered again since that epoch: its earlier records may be lost (KIP-903)."""
        follower = self.followers.get(node)
        last = NO_EPOCH if follower is None else follower.broker_epoch
        return broker_epoch < max(last, self.present.get(node, NO_EPOCH))

    def may_continue(self, node: int, offset: int, broker_epoch: int, start_offset: int, removed_until: int) -> bool:
        """Whether a replica may continue at this offset, of a log that lacks tombstones below `removed_until`."""
        if offset <= start_offset:
            self.copied_from_start[node] = broker_epoch, removed_until
        return (
            offset >= removed_until
            or self.copied_from_start.get(node) == (broker_epoch, removed_until)
            or node in self.maximal_isr
            or node in self.eligible
        )

    def fetched(  # noqa: PLR0913
        self, node: int, offset: int, start_offset: int, end_offset: int, now_ms: int, broker_epoch: int = NO_EPOCH
    ) -> None:
        """Record a fetch of a replica from `offset`, in this leader epoch and with a matching log before it."""
        follower = self.followers.get(node)
        if follower is not None and not self.is_stale(node, broker_epoch):
            follower.broker_epoch = broker_epoch
            follower.fetched(offset, start_offset, end_offset, now_ms)

    def advance(self, end_offset: int, now_ms: int) -> bool:
        """Advance the high watermark as far as possible; returns whether it has moved."""
        if self.eligible:
            return False
        members = self.maximal_isr
        committed = end_offset
        for node, follower in self.followers.items():
            if follower.end_offset < committed and (
                node in members or self._is_about_to_join(node, end_offset, now_ms)
            ):
                committed = follower.end_offset
        if committed <= self.high_watermark:
            return False
        self.high_watermark = committed
        return True

    def _is_about_to_join(self, node: int, end_offset: int, now_ms: int) -> bool:
        follower = self.followers[node]
        is_known = node in self.present and follower.end_offset != NO_OFFSET
        return is_known and follower.is_caught_up(end_offset, now_ms, self._lag_ms)

    def changed(self, state: PartitionState) -> None:
        """Apply the catalog's state in this leader epoch: the proposed change was applied, or never will be."""
        if state.version <= self.version:
            return
        left = self.isr.difference(state.isr)
        self.version = state.version
        self.isr = frozenset(state.isr)
        self.eligible = frozenset(state.eligible)
        self.proposed = None
        self.replicas = state.replicas
        # A replica that left must fetch again before it counts: it may be dead.
        self.followers = {
            node: self.followers[node] if node in self.followers and node not in left else Follower(_NEVER_MS)
            for node in state.replicas
            if node != self.node_id
        }

    def low_watermark(self, start_offset: int) -> int:
        """The earliest log start offset of all replicas that may become leader; NO_OFFSET if one is unknown."""
        members = self.maximal_isr | self.eligible
        starts = (follower.start_offset for node, follower in self.followers.items() if node in members)
        return min((start_offset, *starts))

    # The ISR

    def with_joining(self, node: int, start_offset: int) -> frozenset[int] | None:
        """The ISR with this replica, which has just fetched, if it may join."""
        follower = self.followers.get(node)
        if self.proposed is not None or follower is None or node in self.isr:
            return None
        if self.present.get(node) != follower.broker_epoch:
            return None
        if follower.end_offset < max(self.high_watermark, self.epoch_start) or follower.start_offset < start_offset:
            return None
        return self.isr | {node}

    def without_late(self, end_offset: int, now_ms: int) -> frozenset[int] | None:
        """The ISR without replicas that fell behind, if any."""
        if self.proposed is not None:
            return None
        kept = self.isr - frozenset(self._late(end_offset, now_ms))
        return None if kept == self.isr else kept

    def _late(self, end_offset: int, now_ms: int) -> Iterable[int]:
        lost = self.lost
        for node, follower in self.followers.items():
            if node in self.isr and (node in lost or not follower.is_caught_up(end_offset, now_ms, self._lag_ms)):
                yield node

    @property
    def lost(self) -> frozenset[int]:
        """Replicas below the high watermark that were further ahead before: they lost data and must not become
        leader.
        """
        return frozenset(
            node for node, each in self.followers.items() if NO_OFFSET < each.end_offset < self.high_watermark
        )

    def epochs_of(self, isr: Iterable[int]) -> dict[int, int]:
        """Each member with the broker epoch of its last fetch."""
        return {node: self.followers[node].broker_epoch if node in self.followers else NO_EPOCH for node in isr}

    def propose(self, isr: frozenset[int]) -> None:
        """Propose an ISR. Both ISRs count until the catalog confirms one of them."""
        self.proposed = isr
