"""Planted bugs (mutants). Each must be found within a few seeds."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Mutant(NamedTuple):
    profile: str
    """The histories that should find it."""
    plant: Callable[[], None]


def _hasty() -> None:
    """A leader acknowledges before replication."""
    from tests.cluster.checking.hasty import _at_once

    from ottla.broker.replication.roles import Leader

    Leader.replicated = _at_once  # type: ignore[method-assign]


def _rash() -> None:
    """A commit is acknowledged before it is replicated."""
    from tests.cluster.checking.rash import _at_once

    from ottla.broker.coordinators import transactions as transaction_coordinator

    transaction_coordinator.TransactionCoordinator._until_safe = _at_once  # type: ignore[method-assign]
    transaction_coordinator._ANSWER_AFTER_S = 0.0  # type: ignore[misc]


def _forgetful() -> None:
    """One partition on another node does not get its end marker."""
    from tests.cluster.checking.forgetful import _all_but_one

    from ottla.broker.peers.transaction_requests import TransactionRequests

    TransactionRequests.write_markers = _all_but_one  # type: ignore[method-assign]


def _lax() -> None:
    """Any available replica may lead, in sync or not."""
    from ottla.cluster import decisions, election

    settle = election.settle

    def settle_anyhow(state: Any, brokers: Any, **_: Any) -> Any:
        there = tuple(node for node in state.replicas if node in brokers)
        return settle(replace(state, isr=there) if there else state, brokers)

    election.settle = settle_anyhow
    if hasattr(decisions, "settle"):
        decisions.settle = settle_anyhow  # type: ignore[attr-defined]


def _stubborn() -> None:
    """A follower does not truncate records that its new leader lacks."""
    from ottla.broker.replication import copying

    copying.truncate_to = lambda _log, _offset: None  # type: ignore[attr-defined]


def _unflushed() -> None:
    """With flush = ack a record counts as synced once it is written."""
    from ottla.broker.upkeep.flusher import Flusher
    from ottla.storage.partition_log import PartitionLog

    async def at_once(*_: object) -> None:
        """Do not wait."""

    Flusher.durable = at_once  # type: ignore[method-assign, assignment]
    PartitionLog.acknowledged_offset = property(lambda log: log.next_offset)  # type: ignore[method-assign, assignment]


def _repeating() -> None:
    """A duplicate batch is stored again."""
    from ottla.storage.producers.state import ProducerStates

    check = ProducerStates.check

    def never_a_duplicate(states: Any, *args: Any, **options: Any) -> Any:
        check(states, *args, **options)

    ProducerStates.check = never_a_duplicate  # type: ignore[method-assign]


def _unwritten() -> None:
    """Acknowledgements of a share group are answered, and not written to its state topic."""
    from ottla.broker.share.coordinator import ShareCoordinator

    async def at_once(*_: object) -> None:
        """Write nothing."""

    ShareCoordinator.write = at_once  # type: ignore[method-assign, assignment]


def _generous() -> None:
    """Sometimes an accepted record is delivered again."""
    from ottla.share import partition
    from ottla.share.fates import Acknowledgement, fate

    accepted = itertools.count(1)

    def some_again(span: Any, kind: Any, limits: Any) -> Any:
        is_again = kind is Acknowledgement.ACCEPT and next(accepted) % 20 == 0
        return fate(span, Acknowledgement.RELEASE if is_again else kind, limits)

    partition.fate = some_again  # type: ignore[attr-defined]


def _sloppy() -> None:
    """Compaction drops every tenth batch that has the last value of a key."""
    from ottla.storage.rewrites.compaction import BatchFilter

    sift = BatchFilter.sift
    kept = itertools.count(1)

    def nearly_all(sifting: Any, batch: Any) -> Any:
        remaining = sift(sifting, batch)
        return None if remaining is not None and next(kept) % 10 == 0 else remaining

    BatchFilter.sift = nearly_all  # type: ignore[method-assign]


def _absent() -> None:
    """The cursor of a queue is not committed."""
    from ottla.dmqp.shard_log import ShardLog

    async def at_once(*_: object) -> None:
        """Commit nothing."""

    ShardLog.commit = at_once  # type: ignore[method-assign, assignment]


MUTANTS: Final = {
    "hasty": Mutant("network", _hasty),
    "rash": Mutant("transactions", _rash),
    "forgetful": Mutant("transactions", _forgetful),
    "lax": Mutant("network", _lax),
    "stubborn": Mutant("network", _stubborn),
    "unflushed": Mutant("moves", _unflushed),
    "repeating": Mutant("network", _repeating),
    "unwritten": Mutant("sharing", _unwritten),
    "generous": Mutant("sharing", _generous),
    "sloppy": Mutant("keys", _sloppy),
    "absent": Mutant("queues", _absent),
}
