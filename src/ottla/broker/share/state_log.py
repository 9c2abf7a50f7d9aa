"""The delivery state of share groups in `__share_group_state`, in Kafka's format.

Each change is a separate record; from time to time a snapshot of a share partition is written, and records
before the oldest snapshot are deleted.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.broker.coordinators.replaying import Damaged, batches_of
from ottla.broker.interfaces.in_process_requests import Refused
from ottla.broker.share.writing import append_records
from ottla.broker.topics import SHARE_GROUP_STATE
from ottla.core.errors import ApiError, ProtocolError
from ottla.records.reader import RecordReader
from ottla.share.formats import Snapshot, StateKey, Update
from ottla.share.partition import SharePartition
from ottla.share.records import (
    changes_of,
    decode_state_record,
    encode_state_record,
    forget_state_record,
    state_batches,
    state_name,
    state_partition_for,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.broker.share.writing import Place
    from ottla.records.reader import Record
    from ottla.share.config import ShareConfig
    from ottla.share.partition import Change

_logger: Final = logging.getLogger(__name__)

_COLD_SNAPSHOTS: Final = 20
"""An idle share partition gets a new snapshot after this many snapshots' worth of changes to others."""


class Kept:
    """A share partition, and the number of changes since its snapshot."""

    __slots__ = ("created_ms", "leader_epoch", "rules", "snapshot_epoch", "snapshot_offset", "state_epoch", "updates")

    def __init__(self, rules: SharePartition, created_ms: int, state_epoch: int = 0) -> None:
        self.rules = rules
        self.created_ms = created_ms
        self.state_epoch = state_epoch
        self.leader_epoch = 0
        """In a cluster: the leader epoch of the last read or write."""
        self.snapshot_epoch = 0
        self.snapshot_offset = 0
        self.updates = 0

    @property
    def is_as_begun(self) -> bool:
        """Whether nothing was acknowledged yet, and no administrator has set a start offset."""
        return not (self.state_epoch or self.snapshot_epoch or self.updates)


class StateLog:
    def __init__(self, broker: Broker, config: ShareConfig) -> None:
        self._broker = broker
        self._config = config
        self.kept: dict[StateKey, Kept] = {}
        self._damaged = Damaged()
        self._pruning: set[asyncio.Task[None]] = set()

    def check(self, key: StateKey) -> None:
        """Standalone: raises ApiError if the state is unknown because its partition is damaged."""
        if self._damaged and (error := self._damaged.error_for(self.partition_of(key).at.partition)):
            raise Refused(error, f"the partition with the state of {state_name(key)} is damaged")

    # Reading

    def load(self) -> None:
        state = self._broker.topics.by_name.get(SHARE_GROUP_STATE)
        for partition in state.partitions if state else ():
            try:
                for _ in self.replayed(partition):
                    pass
            except ApiError as damaged:
                self._damaged.add(partition, damaged)
                self.unload(partition.at.partition)
        for kept in self.kept.values():
            kept.rules.settle()

    def replayed(self, partition: Partition) -> Iterator[None]:
        """Read a partition; other requests may be served between batches."""
        for _, batch in batches_of(partition):
            yield
            for record in RecordReader(batch):
                try:
                    self._replay(record)
                except ProtocolError as unreadable:
                    _logger.warning(
                        "%s: skipping unreadable record at offset %d: %s", partition.at, record.offset, unreadable
                    )

    def unload(self, index: int) -> None:
        """Unload a partition of the log."""
        state = self._broker.topics.by_name.get(SHARE_GROUP_STATE)
        count = 0 if state is None else len(state.partitions)
        for key in [each for each in self.kept if not count or state_partition_for(each, count) == index]:
            del self.kept[key]

    def clear(self) -> None:
        """Forget all states: the topic was deleted."""
        self.kept.clear()
        self._damaged.clear()

    def _replay(self, record: Record) -> None:
        key, value = decode_state_record(record.key or b"", record.value)
        if value is None:
            self.kept.pop(key, None)
        elif isinstance(value, Snapshot):
            rules = SharePartition(value.start_offset)
            rules.replay(value.start_offset, changes_of(value.state_batches))
            kept = self.kept[key] = Kept(rules, value.create_timestamp, value.state_epoch)
            kept.leader_epoch = value.leader_epoch
            kept.snapshot_epoch = value.snapshot_epoch
            kept.snapshot_offset = record.offset
        elif (known := self.kept.get(key)) is not None:
            known.rules.replay(value.start_offset, changes_of(value.state_batches))
            known.leader_epoch = value.leader_epoch
            known.updates += 1

    # Writing

    def begin(self, key: StateKey, start: int, state_epoch: int | None = None) -> Place:
        """A group starts to read a partition, or starts over."""
        known = self.kept.get(key)
        if state_epoch is None:
            state_epoch = 0 if known is None else known.state_epoch + 1
        kept = Kept(SharePartition(start), self._broker.clock.now_ms(), state_epoch)
        if known is not None:
            kept.leader_epoch = known.leader_epoch
            kept.snapshot_epoch = known.snapshot_epoch + 1
        place = self._write_snapshot(key, kept)
        self.kept[key] = kept
        return place

    def change(self, key: StateKey, start: int, changes: Sequence[Change]) -> Place:
        kept = self.kept[key]
        update = Update(
            snapshot_epoch=kept.snapshot_epoch,
            leader_epoch=kept.leader_epoch,
            start_offset=start,
            state_batches=state_batches(changes),
        )
        place = append_records(self._broker, self.partition_of(key), [encode_state_record(key, update)])
        kept.updates += 1
        return place

    def changed(self, key: StateKey) -> None:
        """Write a snapshot if one is due after these applied records."""
        if self.snapshot_if_due(key) is not None:
            self.prune(self.partition_of(key))

    def snapshot_if_due(self, key: StateKey) -> Place | None:
        kept = self.kept[key]
        if kept.updates < self._config.state_updates_per_snapshot:
            return None
        kept.snapshot_epoch += 1
        return self._write_snapshot(key, kept)

    def forget(self, keys: Iterable[StateKey]) -> Place | None:
        place = None
        for key in keys:
            if key in self.kept:
                place = append_records(self._broker, self.partition_of(key), [forget_state_record(key)])
                del self.kept[key]
        return place

    def _write_snapshot(self, key: StateKey, kept: Kept) -> Place:
        snapshot = Snapshot(
            snapshot_epoch=kept.snapshot_epoch,
            state_epoch=kept.state_epoch,
            leader_epoch=kept.leader_epoch,
            start_offset=kept.rules.start,
            delivery_complete_count=kept.rules.completed,
            create_timestamp=kept.created_ms,
            write_timestamp=self._broker.clock.now_ms(),
            state_batches=state_batches(kept.rules.lasting()),
        )
        place = append_records(self._broker, self.partition_of(key), [encode_state_record(key, snapshot)])
        kept.snapshot_offset = place.offset
        kept.updates = 0
        return place

    def partition_of(self, key: StateKey) -> Partition:
        """The topic is created with the first share group."""
        state = self._broker.topics.by_name.get(SHARE_GROUP_STATE)
        if state is None:
            state = self._broker.create_topic(SHARE_GROUP_STATE)
        return state.partitions[state_partition_for(key, len(state.partitions))]

    def prune(self, partition: Partition) -> None:
        """Delete records before the oldest snapshot, once all snapshots are safe."""
        here = [(kept.snapshot_offset, key) for key, kept in self.kept.items() if self.partition_of(key) is partition]
        cold = partition.log.next_offset - _COLD_SNAPSHOTS * self._config.state_updates_per_snapshot
        for offset, key in here:
            if offset < cold:
                self.kept[key].snapshot_epoch += 1
                self._write_snapshot(key, self.kept[key])
        oldest = min(self.kept[key].snapshot_offset for _, key in here)
        limit = partition.retention_limit
        if partition.log.start_offset < oldest and (limit is None or oldest < limit):
            self._pruning.add(task := asyncio.get_running_loop().create_task(self._prune_to(partition, oldest)))
            task.add_done_callback(self._pruning.discard)

    async def _prune_to(self, partition: Partition, oldest: int) -> None:
        """Sync the oldest snapshot before older records are deleted: a power failure must not lose both."""
        try:
            await self._broker.flusher.durable(partition, oldest)
            if partition.log.start_offset < oldest:
                partition.log.raise_start(oldest)
        except ApiError as refused:
            _logger.info("%s: could not delete old share group state: %s", partition.at, refused)
