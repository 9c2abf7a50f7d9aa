"""What depends on a partition's role on this broker: appends, reads, and when a record is committed.

A standalone broker has the only copy of each partition (`Standalone`). In a cluster it is the partition's leader, a
follower, or its replica is offline (`replication/roles.py`). Handlers and coordinators use the partition, and never
check its role.
"""
# ruff: noqa: B027 - optional hooks, which most roles leave empty

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from ottla.broker.partition import Partition
    from ottla.broker.requests.waiting import Waiters
    from ottla.storage.folder.closed_log import LogFacts
    from ottla.storage.partition_log import PartitionLog

NO_EPOCH: Final = -1
NO_NODE: Final = -1
"""As in `cluster.state`, which a standalone broker does not import."""
ALL_REPLICAS: Final = -1
"""The value of `acks` with which a record is acknowledged once all in-sync replicas have it."""


class Role(ABC):
    """The role of a replica. Defaults are those of a partition without followers."""

    __slots__ = ("_partition",)

    is_offline: bool = False
    """Whether its log could not be opened, or failed."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    @property
    @abstractmethod
    def is_here(self) -> bool:
        """Whether this broker has a replica of the partition."""

    # Leadership

    @property
    @abstractmethod
    def leads(self) -> bool: ...

    @property
    @abstractmethod
    def leader(self) -> tuple[int, int]:
        """The leader's node id and its epoch."""

    @property
    @abstractmethod
    def term(self) -> object:
        """Another object after each change of leader; None while another broker leads."""

    @abstractmethod
    def check_leads(self) -> None: ...

    @abstractmethod
    def check_can_append(self, acks: int) -> None: ...

    def check_settled(self) -> None:
        """OffsetNotAvailable while a new leader does not know the high watermark yet (KIP-207)."""

    # The log

    @abstractmethod
    def open_log(self, open_: Callable[[], PartitionLog]) -> PartitionLog: ...

    def log_failed(self, log: PartitionLog, why: str) -> None:
        """Handle a failure of the open log."""

    def facts_of_closed(self, _look: Callable[[], LogFacts | None]) -> LogFacts | None:
        """Log start offset, high watermark and size, if available without opening the log."""
        return None

    # Appending

    def appended(self, size: int) -> None:
        """Wake the fetches that can read these appended bytes."""

    def synced(self) -> None:
        """Handle a sync of the log: commit the records that it makes safe."""

    @abstractmethod
    def is_safe(self, offset: int, acks: int) -> bool:
        """Whether the record at `offset` can be acknowledged now."""

    def replicated(self, _offset: int, _timeout_s: float) -> asyncio.Future[None] | None:
        """Done when the ISR has the record at `offset`; None if no other broker needs it."""
        return None

    # Reading

    @property
    @abstractmethod
    def high_watermark(self) -> int: ...

    def check_consumer(self, offset: int, rack_id: str) -> None:
        """Whether a consumer in this rack may read at `offset`."""

    def preferred_read_replica(self, _rack_id: str, _offset: int) -> int | None:
        """The broker that a consumer in this rack should fetch from instead (KIP-392)."""
        return None

    # Deleting

    @property
    def low_watermark(self) -> int:
        """The logs of all in-sync and eligible replicas start here or later."""
        return self._partition.log.start_offset

    def deleted_everywhere(self, _offset: int, _timeout_s: float) -> asyncio.Future[None] | None:
        """Done when the logs of all in-sync and eligible replicas start at `offset` or later; None if there are no
        other replicas.
        """
        return None

    @property
    def retention_limit(self) -> int | None:
        """The offset from which retention must keep records; None if there is no limit."""
        return None

    @property
    def is_in_sync_everywhere(self) -> bool:
        """Whether all replicas have all committed records."""
        return True

    # Followers

    def check_follower(self, follower: int, offset: int, broker_epoch: int) -> None:
        """Whether a follower may fetch from `offset` here."""

    def record_fetch(self, follower: int, offset: int, start_offset: int, broker_epoch: int) -> None:
        """Record a follower's progress: it has everything below `offset`."""

    def end_for_followers(self, isolation_level: int) -> int:
        return self._partition.readable_until(isolation_level)

    def waiters_of(self, _follower: int) -> Waiters:
        return self._partition.waits

    def wait_to_send_s(self, _follower: int) -> float:
        """How long the replication quota delays a follower's next bytes."""
        return 0.0

    def sendable(self, _follower: int, room: int) -> int:
        """How many of `room` bytes the replication quota allows at once."""
        return room

    def sent(self, follower: int, size: int) -> None:
        """Charge the replication quota."""


class Standalone(Role):
    """The only copy: records in the log are committed, after a sync if the flush policy requires one."""

    __slots__ = ()

    is_here = True
    leads = True
    leader = (NO_NODE, NO_EPOCH)

    @property
    def term(self) -> object:
        return self

    def check_leads(self) -> None:
        """A standalone broker always leads."""

    def check_can_append(self, acks: int) -> None:
        """There is no minimum ISR to check."""

    def open_log(self, open_: Callable[[], PartitionLog]) -> PartitionLog:
        log = open_()
        # The data folder may come from another broker, and leader epochs never decrease.
        self._partition.leader_epoch = max(self._partition.leader_epoch, log.epochs.latest)
        return log

    def facts_of_closed(self, look: Callable[[], LogFacts | None]) -> LogFacts | None:
        return look()

    def appended(self, size: int) -> None:
        partition = self._partition
        if partition.waits and size and not partition.is_synced_first:
            partition.waits.got(size)

    def is_safe(self, offset: int, acks: int) -> bool:  # noqa: ARG002
        return not self._partition.is_synced_first

    @property
    def high_watermark(self) -> int:
        return self._partition.log.acknowledged_offset
