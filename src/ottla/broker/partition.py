"""One partition: its log, its role on this broker, and the fetches that wait for it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.broker.requests.waiting import Waiters
from ottla.broker.roles import ALL_REPLICAS, NO_EPOCH, NO_NODE, Standalone
from ottla.core.errors import FencedLeaderEpoch, OffsetOutOfRange, UnknownLeaderEpoch
from ottla.storage.folder.closed_log import LogFacts

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    from ottla.broker.batches.topic_rules import Intake
    from ottla.broker.configs.topic_config import TopicConfig
    from ottla.broker.roles import Role
    from ottla.core.ids import TopicPartition
    from ottla.records.control import EndMarker
    from ottla.storage.appended import Appended
    from ottla.storage.leader_epochs import LeaderEpochs
    from ottla.storage.partition_log import PartitionLog

_READ_COMMITTED: Final = 1
_COORDINATOR_TIMEOUT_S: Final = 5.0
"""Kafka's offsets.commit.timeout.ms."""
_SOME_BYTES: Final = 1
"""Enough to wake followers that wait for more."""


class Partition:
    __slots__ = (
        "_facts",
        "_log",
        "_look",
        "_open",
        "_sync",
        "at",
        "intake",
        "is_synced_first",
        "leader_epoch",
        "min_insync_replicas",
        "role",
        "waits",
    )

    def __init__(
        self,
        at: TopicPartition,
        config: TopicConfig,
        open_log: Callable[[], PartitionLog],
        look: Callable[[], LogFacts | None],
        sync: Callable[[Partition, int], Awaitable[None]],
    ) -> None:
        self.at = at
        self.leader_epoch = 0
        self.role: Role = Standalone(self)
        """Replaced by replication, in a cluster."""
        self.min_insync_replicas = config.min_insync_replicas
        self.is_synced_first = config.log.flush == "ack"
        """Whether records are synced before they are acknowledged and read."""
        self.intake = _intake(config)
        self.waits = Waiters()
        self._open = open_log
        self._look = look
        self._sync = sync
        self._facts: LogFacts | None = None
        """The facts of a log that was never opened, and so does not change."""
        self._log: PartitionLog | None = None

    # The log

    @property
    def log(self) -> PartitionLog:
        """Opened when it is first used, so that a start does not wait for all of them."""
        if self._log is None:
            self._log = self.role.open_log(self._open)
            self._log.when_offline = partial(self._log_failed, self._log)
        return self._log

    def _log_failed(self, log: PartitionLog, why: str) -> None:
        # Failures of a log that was since replaced are ignored.
        if log is self._log:
            self.role.log_failed(log, why)

    @property
    def facts(self) -> LogFacts:
        """Log start offset, high watermark and size; a closed log is not opened if its folder has them."""
        if self._log is None:
            self._facts = self._facts or self.role.facts_of_closed(self._look)
            if self._facts is not None:
                return self._facts
        return LogFacts(self.log.start_offset, self.high_watermark, self.log.size)

    @property
    def known_size(self) -> int | None:
        """The size of the log if it is open, or was looked at; nothing is read for it."""
        if self._log is not None:
            return self._log.size
        return None if self._facts is None else self._facts.size

    def open(self) -> None:
        """Open the log ahead of its first use."""
        _ = self.log

    def close(self) -> None:
        """Close the log and detach it."""
        self._log = None

    def use_config(self, config: TopicConfig) -> None:
        self.min_insync_replicas = config.min_insync_replicas
        self.is_synced_first = config.log.flush == "ack"
        self.intake = _intake(config)
        if self._log is not None:
            self._log.use_config(config.log)

    @property
    def is_here(self) -> bool:
        return self.role.is_here

    @property
    def is_open(self) -> bool:
        return self._log is not None

    @property
    def is_offline(self) -> bool:
        """Whether its open log failed, or its replica's log could not be opened."""
        return self._log.is_offline if self._log is not None else self.role.is_offline

    @property
    def is_unopenable(self) -> bool:
        """Whether it is a replica whose log could not be opened; opening is retried."""
        return self._log is None and self.role.is_offline

    # Leadership

    @property
    def leader(self) -> tuple[int, int]:
        """In a cluster: the leader's node id and epoch (KIP-951)."""
        return self.role.leader

    @property
    def leads(self) -> bool:
        return self.role.leads

    @property
    def term(self) -> object:
        """Another object after each change of leader; None while another broker leads."""
        return self.role.term

    def check_epoch(self, epoch: int) -> None:
        """Check that a client's leader epoch, if it sends one, is the current one (KIP-320)."""
        if epoch not in (NO_EPOCH, self.leader_epoch):
            raise self._other_epoch(epoch)

    def _other_epoch(self, epoch: int) -> FencedLeaderEpoch | UnknownLeaderEpoch:
        if epoch < self.leader_epoch:
            return FencedLeaderEpoch(f"{self.at} is at leader epoch {self.leader_epoch}, not {epoch}")
        return UnknownLeaderEpoch(f"{self.at} is at leader epoch {self.leader_epoch}, not yet {epoch}")

    def check_leader(self, epoch: int) -> None:
        """Check the leader epoch, and that this broker leads the partition."""
        self.check_epoch(epoch)
        self.role.check_leads()

    def check_leads(self) -> None:
        self.role.check_leads()

    def check_can_append(self, acks: int = ALL_REPLICAS) -> None:
        """Check that this broker leads and, for acks=all, that enough replicas are in sync."""
        self.role.check_can_append(acks)

    def check_settled(self) -> None:
        """OffsetNotAvailable while a new leader does not know the high watermark yet (KIP-207)."""
        self.role.check_settled()

    # Appending, after `check_can_append`

    def append(self, batch: bytearray | memoryview, *, has_keys: bool = False, is_checked: bool = False) -> Appended:
        """Append a producer's or coordinator's batch, and wake the fetches that can read it."""
        log = self.log if self._log is None else self._log
        appended = log.append(batch, self.leader_epoch, has_keys=has_keys, is_checked=is_checked)
        self.role.appended(0 if appended.is_duplicate else len(batch))
        return appended

    def append_of_coordinator(self, batch: bytearray) -> Appended:
        """Append a batch within a producer's transaction, which has no sequence numbers."""
        appended = self.log.append_of_coordinator(batch, self.leader_epoch)
        self.role.appended(len(batch))
        return appended

    def append_end_marker(self, producer: tuple[int, int], marker: EndMarker) -> Appended:
        appended = self.log.append_end_marker(*producer, marker, self.leader_epoch)
        self.role.appended(_SOME_BYTES)
        self.waits.end()  # the last stable offset advances by more than the marker
        return appended

    def is_safe(self, offset: int, acks: int = ALL_REPLICAS) -> bool:
        """Whether the record at `offset`, just appended, can be acknowledged without `until_safe`."""
        return self.role.is_safe(offset, acks)

    async def until_safe(
        self, offset: int, *, acks: int = ALL_REPLICAS, timeout_s: float = _COORDINATOR_TIMEOUT_S
    ) -> None:
        """Return once the record at `offset` can be acknowledged; raises ApiError if it cannot, or not in time.

        It is synced if the flush policy requires that, and with acks=all replicated to the ISR.
        """
        if self.is_synced_first:
            await self._sync(self, offset)
        if acks == ALL_REPLICAS:
            replicated = self.role.replicated(offset, timeout_s)
            if replicated is not None:
                await replicated

    def synced(self) -> None:
        """With `flush = "ack"`, handle a sync of the log: more records may be committed and readable."""
        self.role.synced()
        self.waits.end()

    # Reading

    @property
    def high_watermark(self) -> int:
        """Consumers see the records below this."""
        return self.role.high_watermark

    @property
    def last_stable_offset(self) -> int:
        return min(self.role.high_watermark, self.log.last_stable_offset)

    def readable_until(self, isolation_level: int) -> int:
        return self.last_stable_offset if isolation_level == _READ_COMMITTED else self.role.high_watermark

    def check_consumer(self, epoch: int, offset: int, rack_id: str) -> None:
        """Whether a consumer in this rack may read at `offset`, given the leader epoch it has."""
        if epoch not in (NO_EPOCH, self.leader_epoch):
            raise self._other_epoch(epoch)
        self.role.check_consumer(offset, rack_id)

    def read(self, offset: int, room: int, until: int, *, is_first: bool) -> memoryview | bytes:
        """Whole batches from `offset` to `until`; only the first of a response may be larger than `room`."""
        if is_first:
            return self.log.read(offset, max(room, 0), until)
        # Without room nothing is read, but an offset outside the log must still fail.
        records = self.log.read(offset, max(room, 0), until if room > 0 else offset)
        return b"" if len(records) > room else records

    def wait_for(self, follower: int) -> Waiters:
        """The waiters of this partition: followers wait for appended records, consumers for committed ones."""
        return self.waits if follower == NO_NODE else self.role.waiters_of(follower)

    @property
    def leader_epochs(self) -> LeaderEpochs:
        """The leader epochs of its log, including the current one if this broker leads."""
        log = self.log
        return log.epochs.with_current(self.leader_epoch, log.next_offset) if self.role.leads else log.epochs

    def divergence(self, offset: int, last_epoch: int) -> tuple[int, int] | None:
        """Where a reader's log, whose last record before `offset` has `last_epoch`, diverges from this one.

        The largest common epoch and its end offset (KIP-320, KIP-595); None if the logs agree.
        """
        if last_epoch < 0:
            return None
        log = self.log
        epoch, end = self.leader_epochs.end_of(last_epoch, log.next_offset)
        if epoch < 0 or offset < log.start_offset:
            raise OffsetOutOfRange(f"{self.at}: no offset {offset} after leader epoch {last_epoch}")
        return None if epoch == last_epoch and end >= offset else (epoch, end)

    # Deleting

    @property
    def low_watermark(self) -> int:
        """The logs of all in-sync and eligible replicas start here or later."""
        return self.role.low_watermark

    def deleted_everywhere(self, offset: int, timeout_s: float) -> asyncio.Future[None] | None:
        """Done when the logs of all in-sync and eligible replicas start at `offset` or later; None if there are no
        other replicas.
        """
        return self.role.deleted_everywhere(offset, timeout_s)

    @property
    def retention_limit(self) -> int | None:
        """The offset from which retention must keep records, because other replicas may not have them; None if there is
        no limit.
        """
        return self.role.retention_limit

    @property
    def is_in_sync_everywhere(self) -> bool:
        """Whether all replicas have all committed records."""
        return self.role.is_in_sync_everywhere


def _intake(config: TopicConfig) -> Intake | None:
    if config.keeps_batches:
        return None
    from ottla.broker.batches.topic_rules import Intake  # not needed by most topics

    return Intake.of(config)
