"""One partition as clients see it: a log, how far they may read it, and who waits for more."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.broker.batches.topic_rules import Intake
from ottla.core.errors import FencedLeaderEpoch, NotLeaderOrFollower, UnknownLeaderEpoch
from ottla.storage.folder.closed_log import LogFacts

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.configs.topic_config import TopicConfig
    from ottla.broker.replication.replica import Replica
    from ottla.broker.requests.waiting import ByteWait
    from ottla.core.ids import TopicPartition
    from ottla.storage.leader_epochs import LeaderEpochs
    from ottla.storage.partition_log import PartitionLog

NO_EPOCH: Final = -1
NOBODY: Final = -1


class Partition:
    __slots__ = (
        "_facts",
        "_log",
        "_look",
        "_open",
        "at",
        "intake",
        "leader_epoch",
        "min_insync_replicas",
        "replica",
        "waits",
    )

    def __init__(
        self,
        at: TopicPartition,
        config: TopicConfig,
        open_log: Callable[[], PartitionLog],
        look: Callable[[], LogFacts | None],
    ) -> None:
        self.at = at
        self.leader_epoch = 0
        self.replica: Replica | None = None
        """In a cluster: whether this broker leads or follows. Alone it has the only copy."""
        self.min_insync_replicas = config.min_insync_replicas
        self.intake = Intake.of(config)
        self.waits: set[ByteWait] = set()
        self._open = open_log
        self._look = look
        self._facts: LogFacts | None = None
        """Of a log that was never open: nothing changes it."""
        self._log: PartitionLog | None = None

    @property
    def log(self) -> PartitionLog:
        """Opened when it is first needed, so that a start does not wait for partitions nobody asks for."""
        if self._log is None:
            if self.replica is not None and not self.replica.is_here:
                raise NotLeaderOrFollower(f"{self.at} is not kept here")
            self._log = self._open() if self.replica is None else self.replica.open_log(self._open)
            self._log.when_offline = partial(self._log_failed, self._log)
            if self.replica is None:
                # It may come from elsewhere, and epochs never go back.
                self.leader_epoch = max(self.leader_epoch, self._log.epochs.latest)
        return self._log

    def _log_failed(self, log: PartitionLog, why: str) -> None:
        # A log that was replaced by another one cannot fail any more.
        if self.replica is not None and log is self._log:
            self.replica.log_failed(log, why)

    @property
    def facts(self) -> LogFacts:
        """Its bounds and size. A log that is not open is not opened for them if a look at its folder tells."""
        if self._log is None and self.replica is None:
            self._facts = self._facts or self._look()
            if self._facts is not None:
                return self._facts
        return LogFacts(self.log.start_offset, self.high_watermark, self.log.size)

    def open(self) -> None:
        """Have the log ready for when it is needed."""
        _ = self.log

    def close(self) -> None:
        """Its log is closed, and not kept here any more."""
        self._log = None

    @property
    def is_here(self) -> bool:
        return self.replica is None or self.replica.is_here

    def use_config(self, config: TopicConfig) -> None:
        self.min_insync_replicas = config.min_insync_replicas
        self.intake = Intake.of(config)
        if self._log is not None:
            self._log.use_config(config.log)

    @property
    def is_open(self) -> bool:
        return self._log is not None

    @property
    def is_offline(self) -> bool:
        """Whether the disk failed it: its open log, or opening it as a replica."""
        return self._log.is_offline if self._log is not None else self.is_unopenable

    @property
    def is_unopenable(self) -> bool:
        """Whether it is a replica whose log could not be opened; it is tried again after a while."""
        return self._log is None and self.replica is not None and self.replica.offline is not None

    @property
    def leader(self) -> tuple[int, int]:
        """Who leads in a cluster, and in which epoch (KIP-951)."""
        return (NOBODY, NO_EPOCH) if self.replica is None else (self.replica.leader, self.replica.leader_epoch)

    @property
    def high_watermark(self) -> int:
        """Consumers see the records below this."""
        return self.log.acknowledged_offset if self.replica is None else self.replica.high_watermark

    @property
    def last_stable_offset(self) -> int:
        return min(self.high_watermark, self.log.last_stable_offset)

    def readable_until(self, isolation_level: int) -> int:
        return self.last_stable_offset if isolation_level == 1 else self.high_watermark

    def check_epoch(self, epoch: int) -> None:
        """Whether a client's idea of who leads is ours (KIP-320); NO_EPOCH has none."""
        if epoch in (NO_EPOCH, self.leader_epoch):
            return
        if epoch < self.leader_epoch:
            raise FencedLeaderEpoch(f"{self.at} is at leader epoch {self.leader_epoch}, not {epoch}")
        raise UnknownLeaderEpoch(f"{self.at} is at leader epoch {self.leader_epoch}, not yet {epoch}")

    def check_leader(self, epoch: int) -> None:
        """The same, and that it is this broker who leads."""
        self.check_epoch(epoch)
        self.check_leads()

    @property
    def leads(self) -> bool:
        return self.replica is None or self.replica.leads

    def check_leads(self) -> None:
        if self.replica is not None:
            self.replica.check_leads()

    def check_can_append(self, acks: int) -> None:
        """Whether this broker leads and, for acks=all, enough replicas are in sync."""
        if self.replica is not None:
            self.replica.check_can_append(acks)

    @property
    def is_safe_at_once(self) -> bool:
        """Whether an append need not be waited for: there is one replica, and its flush policy does not ask for it."""
        return self.replica is None and self.log.config.flush != "ack"

    @property
    def leader_epochs(self) -> LeaderEpochs:
        """The epochs of its log; where this broker leads, with its current one."""
        log = self.log
        if self.replica is not None and not self.replica.leads:
            return log.epochs
        return log.epochs.with_current(self.leader_epoch, log.next_offset)

    def appended(self, size: int) -> None:
        """Notify waiting fetches that this many more bytes are readable."""
        if self.replica is not None:
            self.replica.appended(size)
            return
        for wait in tuple(self.waits):
            wait.got(size)

    def more_is_readable(self) -> None:
        """Notify waiting fetches that more is readable, where the number of bytes is unknown."""
        for wait in tuple(self.waits):
            wait.end()
