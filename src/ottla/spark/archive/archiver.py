"""Archives the records of a topic that its archive lacks."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Final

from ottla.client.errors import BrokerError, OffsetOutOfRange, RequestTimedOut
from ottla.core.ids import TopicPartition
from ottla.spark.archive.cover import contents_of
from ottla.spark.archive.errors import ArchiveError, another_topic, gap, shorter
from ottla.spark.archive.names import Span
from ottla.spark.archive.tables import archived_rows, topic_id_of
from ottla.spark.archive.writing import merge, publish_fetched, remove_leftovers
from ottla.spark.reader.options import Selection
from ottla.spark.reader.topic_layout import Cluster
from ottla.spark.reporting.progress import GroupProgress
from ottla.wire.declare import NO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from ottla.client.blocking.background import Background
    from ottla.client.consumer.consumer import Consumer
    from ottla.spark.archive.places import ArchiveLock, Place
    from ottla.spark.reader.offsets import Offsets

_FETCH_BYTES: Final = 4 << 20
_STRETCH_BYTES: Final = 128 << 20
"""Bytes of a partition held in memory before they are published."""
_ALL_BYTES: Final = 384 << 20
"""The same for all partitions together."""
_WAIT_MS: Final = 100
_PATIENCE_S: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a topic is archived."""

    allows_gaps: bool = False
    merges_all: bool = False
    trims_older_than_ms: int | None = None
    """What is archived and older than this is deleted from the topic."""


@dataclass(slots=True)
class Done:
    """What one round did."""

    records: int = 0
    stretches: int = 0
    merged: int = 0
    ends: Offsets = field(default_factory=dict)
    """How far the archive reaches now."""
    trimmed_to: Offsets = field(default_factory=dict)


class Archiver:
    """The archive of one topic. The caller holds its lock."""

    def __init__(self, link: Background, topic: str, place: Place, hold: ArchiveLock, rules: Rules) -> None:
        self._link = link
        self._topic = topic
        self._place = place
        self._hold = hold
        self._rules = rules
        self._cluster = Cluster(link, is_committed_only=True)
        self._progress = GroupProgress(link, f"archive-{topic}")
        self._is_checked = False

    def round(self) -> Done:
        """Archive the current records."""
        done = Done()
        partitions = self._cluster.partitions(Selection(topics=(self._topic,)))
        topic_id = next(iter(partitions.values()))
        if not self._is_checked:
            self._check_topic(topic_id)
            remove_leftovers(self._place)
            self._is_checked = True
        starts = self._starts(partitions)
        targets = self._cluster.latest(partitions)
        if short := [at for at, start in starts.items() if targets[at] < start]:
            raise shorter(short[0], starts[short[0]], targets[short[0]])
        behind = {at: start for at, start in starts.items() if start < targets[at]}
        if behind:
            _Fetching(self._link, behind, targets, self._hold, topic_id).run(done)
        done.merged = merge(self._place, self._hold, topic_id, _today(), is_thorough=self._rules.merges_all)
        done.ends = self._archived()
        self._progress.tell(done.ends)
        if self._rules.trims_older_than_ms is not None:
            done.trimmed_to = self._trim(done.ends, self._rules.trims_older_than_ms)
        return done

    def _archived(self) -> Offsets:
        ends = contents_of(self._place.sizes()).ends()
        return {TopicPartition(self._topic, partition): end for partition, end in ends.items()}

    def _check_topic(self, topic_id: bytes) -> None:
        for pieces in contents_of(self._place.sizes()).pieces.values():
            with self._place.open(str(pieces[-1].stretch.files[0])) as file:
                archived = topic_id_of(file)
            if NO_UUID not in (archived, topic_id) and archived and archived != topic_id:
                raise another_topic(self._topic, "the archive")

    def _starts(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The end of the archive by partition; for unarchived partitions, the start of the topic."""
        archived, earliest = self._archived(), self._cluster.earliest(partitions)
        for at, end in archived.items():
            if at in earliest and earliest[at] > end and not self._rules.allows_gaps:
                raise gap(at, end, earliest[at])
        return {at: max(archived.get(at, first), first) for at, first in earliest.items()}

    def _trim(self, ends: Offsets, age_ms: int) -> Offsets:
        self._hold.confirm()
        before_ms = int(datetime.now(UTC).timestamp() * 1000) - age_ms
        old = self._cluster.at_time(ends, before_ms) if age_ms else ends
        earliest = self._cluster.earliest(ends)
        wanted = {at: offset for at in ends if (offset := min(ends[at], old[at])) > earliest[at]}
        outcomes = self._link.call(self._link.client.admin.delete_records(wanted)) if wanted else {}
        for outcome in outcomes.values():
            if isinstance(outcome, BrokerError):
                raise outcome
        return {at: first for at, first in outcomes.items() if not isinstance(first, BrokerError)}


class _Fetching:
    """The offset ranges to archive in this round."""

    def __init__(self, link: Background, starts: Offsets, targets: Offsets, hold: ArchiveLock, topic_id: bytes) -> None:
        self._link = link
        self._positions = dict(starts)
        self._published = dict(starts)
        self._targets = targets
        self._hold = hold
        self._topic_id = topic_id
        self._waiting: dict[TopicPartition, list[pa.RecordBatch]] = defaultdict(list)
        self._bytes: dict[TopicPartition, int] = defaultdict(int)
        self._last_progress_s = monotonic()

    def run(self, done: Done) -> None:
        consumer: Consumer[bytes, bytes] = self._link.do(
            lambda: self._link.client.consumer(
                auto_offset_reset="none", isolation_level="read_committed", consumer_max_bytes=_FETCH_BYTES
            )
        )
        try:
            self._link.call(self._begin(consumer))
            while any(offset < self._targets[at] for at, offset in self._positions.items()):
                self._fetch(consumer)
                for at in self._full():
                    self._publish(at, done)
            for at in list(self._positions):
                self._publish(at, done)
        finally:
            self._link.call(consumer.close())

    async def _begin(self, consumer: Consumer[bytes, bytes]) -> None:
        await consumer.assign(self._positions)
        # In the same turn of the loop, before it looks for an offset to begin at.
        for at, offset in self._positions.items():
            consumer.seek(at, offset)

    def _fetch(self, consumer: Consumer[bytes, bytes]) -> None:
        try:
            table = self._link.call(consumer.fetch_arrow(timeout_ms=_WAIT_MS))
        except OffsetOutOfRange as gone:
            raise ArchiveError(f"the topic loses records faster than they are archived: {gone}") from gone
        for batch in table.to_batches():
            at = TopicPartition(batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py())
            self._waiting[at].append(archived_rows(batch))
            self._bytes[at] += batch.nbytes
        self._advance(consumer)

    def _advance(self, consumer: Consumer[bytes, bytes]) -> None:
        """Offsets without records count, too: end markers and compacted records."""
        for at, before in self._positions.items():
            self._positions[at] = self._link.call(consumer.position(at))
            if self._positions[at] > before:
                self._last_progress_s = monotonic()
        if monotonic() - self._last_progress_s > _PATIENCE_S:
            raise RequestTimedOut(f"nothing came from the broker within {_PATIENCE_S:g} s")

    def _full(self) -> list[TopicPartition]:
        full = [at for at, size in self._bytes.items() if size >= _STRETCH_BYTES]
        if not full and sum(self._bytes.values()) >= _ALL_BYTES:
            return [max(self._bytes, key=self._bytes.__getitem__)]
        return full

    def _publish(self, at: TopicPartition, done: Done) -> None:
        start, end = self._published[at], self._positions[at]
        if start == end:
            return
        batches = self._waiting.pop(at, [])
        publish_fetched(self._hold, Span(at.partition, start, end), batches, self._topic_id, _today())
        self._published[at] = end
        self._bytes.pop(at, None)
        done.records += sum(batch.num_rows for batch in batches)
        done.stretches += 1


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
