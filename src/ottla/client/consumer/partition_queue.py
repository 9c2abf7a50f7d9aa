"""One assigned partition: its position, fetched records, and the fetch in flight.

A queue is filled by the fetch task of its leader and emptied by the consumer. Each seek starts another era: a late
response to a request of an earlier era is dropped.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from ottla.client.consumer.transactions import without_aborted
from ottla.records.batch import HEADER_BYTES, read_header
from ottla.records.batches import find_batches
from ottla.records.reader import RecordReader

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ottla.core.ids import TopicPartition
    from ottla.records.reader import Record
    from ottla.wire.messages.fetch import PartitionData

_UNLIMITED: Final = (1 << 63) - 1
NO_REPLICA: Final = -1
_SMALL_SHARE: Final = 8
"""A smaller fraction of its response than this is copied, so that it does not keep the whole response in memory."""


class Start(Enum):
    """Where to start when no offset is known yet."""

    COMMITTED = "committed"
    """The committed offset, or by the reset policy if there is none."""
    RESET = "reset"
    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Settings shared by all partitions of a consumer."""

    max_buffers: int = 2
    max_bytes: int = 1 << 20
    check_crcs: bool = True
    is_committed_only: bool = False
    key_deserializer: Callable[[bytes], Any] | None = None
    value_deserializer: Callable[[bytes], Any] | None = None


class Buffer:
    """One fetched buffer, from `from_offset` to below `next_offset`."""

    __slots__ = ("batches", "from_offset", "next_offset", "reader")

    def __init__(self, batches: memoryview, from_offset: int, next_offset: int, reader: RecordReader) -> None:
        self.batches = batches
        self.from_offset = from_offset
        self.next_offset = next_offset
        self.reader = reader


class PartitionQueue:
    __slots__ = (
        "_buffers",
        "_reading",
        "at",
        "era",
        "failures",
        "fetch_offset",
        "high_watermark",
        "is_caught_up",
        "is_failed",
        "is_held_back",
        "is_listed",
        "is_paused",
        "is_pending",
        "last_stable_offset",
        "log_start_offset",
        "max_bytes",
        "not_before",
        "position",
        "replica",
        "start",
        "until",
    )

    def __init__(self, at: TopicPartition, reading: Reading) -> None:
        self.at = at
        self._reading = reading
        self._buffers: deque[Buffer] = deque()
        self.era = 0
        self.start = Start.COMMITTED
        self.position: int | None = None
        """The offset of the next record to deliver."""
        self.fetch_offset: int | None = None
        """The offset of the next record to fetch; None while it is looked up according to `start`."""
        self.is_pending = False
        self.is_caught_up = False
        """Whether the last fetch was empty, so that a long poll is appropriate."""
        self.is_paused = False
        self.is_held_back = False
        """Whether it is not assigned by the group yet, or about to be revoked."""
        self.is_failed = False
        """Whether there was an error that only a seek can skip."""
        self.is_listed = False
        """Maintained by `ReadyQueues`."""
        self.replica = NO_REPLICA
        """The preferred read replica chosen by the leader, if any (KIP-392)."""
        self.failures = 0
        self.not_before = 0.0
        """Do not fetch before this time, after an error."""
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.max_bytes = reading.max_bytes
        self.until: int | None = None
        """Nothing is fetched from this offset on; None if there is no end."""

    def __repr__(self) -> str:
        return f"<{self.at} at {self.position}, {len(self._buffers)} buffers, next fetch from {self.fetch_offset}>"

    # Where to read

    def seek(self, offset: int, until: int | None = None) -> None:
        self._begin_era()
        self.position = self.fetch_offset = offset
        self.until = until

    def seek_to(self, start: Start) -> None:
        self._begin_era()
        self.position = self.fetch_offset = self.until = None
        self.start = start

    def _begin_era(self) -> None:
        self.era += 1
        self._buffers.clear()
        self.is_pending = self.is_failed = self.is_caught_up = False
        self.failures = 0
        self.not_before = 0.0

    @property
    def needs_start(self) -> bool:
        return self.fetch_offset is None and not self.is_failed and not self.is_held_back

    def begin_at(self, era: int, offset: int) -> None:
        """Start at the offset that was looked up for this era."""
        if era == self.era and self.fetch_offset is None:
            self.fetch_offset = offset
            if not self._buffers:
                self.position = offset

    def reset(self, era: int) -> None:
        """Offset out of range: restart by the reset policy, after the records already here."""
        if era == self.era:
            self.is_pending = False
            self.fetch_offset = None
            self.start = Start.RESET

    # Fetching

    @property
    def has_room(self) -> bool:
        return len(self._buffers) < self._reading.max_buffers

    @property
    def buffer_count(self) -> int:
        return len(self._buffers)

    @property
    def is_wanted(self) -> bool:
        """Whether records should be fetched, now or once there is a free buffer."""
        if not self.is_delivered or self.fetch_offset is None:
            return False
        return self.until is None or self.fetch_offset < self.until

    @property
    def is_delivered(self) -> bool:
        return not (self.is_paused or self.is_failed or self.is_held_back)

    def ask(self) -> int:
        """Record a sent request; returns the era of its response."""
        self.is_pending = True
        return self.era

    def unanswered(self, era: int) -> None:
        if era == self.era:
            self.is_pending = False

    def retry_later(self, era: int, not_before: float) -> None:
        if era == self.era:
            self.is_pending = False
            self.failures += 1
            self.not_before = not_before

    def fill(self, era: int, data: PartitionData) -> bool:
        """Add a fetched buffer; returns whether there are more records to deliver now."""
        if era != self.era or self.fetch_offset is None:
            return False
        self.is_pending = False
        self.failures = 0
        self.high_watermark = data.high_watermark
        self.last_stable_offset = data.last_stable_offset
        self.log_start_offset = data.log_start_offset
        # The whole response has a size limit, and may be full before this partition is reached.
        self.is_caught_up = not data.records and self.fetch_offset >= self.end_offset
        if not data.records:
            return False
        batches = memoryview(data.records)
        begin, end, next_offset = find_batches(batches, self.fetch_offset, _UNLIMITED, _UNLIMITED)
        if end <= begin:
            self._ask_for_more(batches, begin)
            return False
        batches = batches[begin:end]
        if self._reading.is_committed_only and data.aborted_transactions:
            batches = without_aborted(batches, data.aborted_transactions)
        elif len(batches) * _SMALL_SHARE < memoryview(batches.obj).nbytes:
            batches = memoryview(bytes(batches))
        self._add(batches, next_offset)
        return True

    def _ask_for_more(self, batches: memoryview, begin: int) -> None:
        """Request more: brokers before Kafka 0.10.1 truncate a batch larger than the requested size."""
        is_header_here = len(batches) - begin >= HEADER_BYTES
        self.max_bytes = read_header(batches, begin).size if is_header_here else 2 * self.max_bytes

    def _add(self, batches: memoryview, next_offset: int) -> None:
        from_offset = self.fetch_offset or 0
        self._buffers.append(Buffer(batches, from_offset, next_offset, self._reader(batches, from_offset)))
        self.fetch_offset = next_offset
        self.max_bytes = self._reading.max_bytes

    def _reader(self, batches: memoryview, from_offset: int) -> RecordReader:
        return RecordReader(
            batches,
            from_offset,
            topic=self.at.topic,
            partition=self.at.partition,
            key_deserializer=self._reading.key_deserializer,
            value_deserializer=self._reading.value_deserializer,
            check_crcs=self._reading.check_crcs,
        )

    # Delivery

    @property
    def has_records(self) -> bool:
        return bool(self._buffers) and self.is_delivered

    def take(self, count: int) -> list[Record]:
        """At most `count` records of the first non-empty buffer; a record error is raised repeatedly."""
        while self._buffers:
            buffer = self._buffers[0]
            records = buffer.reader.take(count)
            if buffer.reader.is_done or not records:
                self._buffers.popleft()
                self.position = buffer.next_offset
            else:
                self.position = records[-1].offset + 1
            if records:
                return records
        return []

    @property
    def first_buffer(self) -> tuple[memoryview, int]:
        """The first buffer's complete batches, and the offset from which they are undelivered."""
        buffer = self._buffers[0]
        return buffer.batches, max(self.position or 0, buffer.from_offset)

    def pass_over(self, byte_count: int) -> None:
        """Skip this many bytes of the first buffer, which were delivered as batches."""
        buffer = self._buffers[0]
        if byte_count == len(buffer.batches):
            self._buffers.popleft()
            self.position = buffer.next_offset
        else:
            rest = buffer.batches[byte_count:]
            self.position = read_header(rest).base_offset
            self._buffers[0] = Buffer(rest, self.position, buffer.next_offset, self._reader(rest, self.position))

    def fail(self) -> None:
        """Record that the next record cannot be delivered; the position stays there until a seek."""
        self.is_failed = True
        if self._buffers and self.position is not None:
            self.position = max(self.position, self._buffers[0].reader.offset)

    # Lag

    @property
    def end_offset(self) -> int:
        """The last known end offset for this reader; -1 if unknown."""
        return self.last_stable_offset if self._reading.is_committed_only else self.high_watermark

    @property
    def lag(self) -> int | None:
        """The number of remaining offsets; None if unknown."""
        if self.position is None or self.end_offset < 0:
            return None
        return max(0, self.end_offset - self.position)

    @property
    def is_at_end(self) -> bool:
        """Whether everything up to the last known end has been delivered."""
        return not self._buffers and self.lag == 0
