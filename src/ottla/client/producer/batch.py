"""One batch of records for a partition, and its outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ottla.records.encode import BatchBuilder, restamped
from ottla.records.reader import RecordReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ottla.client.errors import ClientError

NO_SEQUENCE: Final = -1
NO_OFFSET: Final = -1
NO_TIMESTAMP: Final = -1


@dataclass(frozen=True, slots=True)
class Identity:
    """The producer id and epoch, for deduplication by the broker."""

    producer_id: int = -1
    epoch: int = -1
    is_transactional: bool = False


NOBODY: Final = Identity()


@dataclass(frozen=True, slots=True)
class Acknowledged:
    base_offset: int
    log_append_time_ms: int = NO_TIMESTAMP


@dataclass(frozen=True, slots=True)
class Refused:
    error: ClientError
    record_errors: Mapping[int, ClientError] = field(default_factory=dict)
    """Errors by the record's index in the batch; `error` applies to all other records."""

    def error_of(self, index: int) -> ClientError:
        return self.record_errors.get(index, self.error)


@dataclass(frozen=True, slots=True)
class Split:
    """The outcome of a batch that is too large for the broker: it is split into several."""

    parts: tuple[Batch, ...]


class Batch:
    """Filled, then sealed, sent once or more, and finally done."""

    __slots__ = (
        "_builder",
        "_count",
        "_parent",
        "_sequence_in_data",
        "_urge",
        "_when_done",
        "awaited",
        "base_sequence",
        "begun_s",
        "data",
        "identity",
        "is_urgent",
        "order",
        "outcome",
        "partition",
        "topic",
    )

    def __init__(
        self, topic: str, partition: int, builder: BatchBuilder, begun_s: float, urge: Callable[[], None]
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.begun_s = begun_s
        self.is_urgent = False
        self.awaited = 0
        self.order: tuple[int, ...] = ()
        """Its order among the partition's batches; a part of a split batch adds its own."""
        self.identity = NOBODY
        self.base_sequence = NO_SEQUENCE
        self.data: bytearray | None = None
        self.outcome: Acknowledged | Refused | Split | None = None
        self._builder: BatchBuilder | None = builder
        self._count = 0  # used once the builder was released
        self._urge = urge
        self._sequence_in_data = NO_SEQUENCE
        self._when_done: list[Callable[[], None]] = []
        self._parent: Batch | None = None

    def __repr__(self) -> str:
        return f"<batch of {self.count} for {self.topic}-{self.partition}: {self.outcome or 'in flight'}>"

    @property
    def count(self) -> int:
        return self._builder.count if self._builder is not None else self._count

    @property
    def size(self) -> int:
        """The size before compression; the batch must not be done yet."""
        return self._records.size

    @property
    def _records(self) -> BatchBuilder:
        if self._builder is None:
            raise RuntimeError("a finished batch holds no records")
        return self._builder

    def encode(self, identity: Identity) -> bytearray:
        """The bytes to send, the same on each attempt unless the producer id or sequence has changed."""
        if self.data is None:
            self.data = self._records.build(
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                base_sequence=self.base_sequence,
                is_transactional=identity.is_transactional,
            )
        elif (self.identity, self._sequence_in_data) != (identity, self.base_sequence):
            # A copy: an abandoned connection may still hold the old bytes.
            self.data = restamped(self.data, identity.producer_id, identity.epoch, self.base_sequence)
        self.identity = identity
        self._sequence_in_data = self.base_sequence
        return self.data

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call back once the batch is done. Other threads must check afterwards whether it already is."""
        self._when_done.append(callback)

    @property
    def is_done(self) -> bool:
        if isinstance(self.outcome, Split):
            return all(part.is_done for part in self.outcome.parts)
        return self.outcome is not None

    def finish(self, outcome: Acknowledged | Refused) -> None:
        self.outcome = outcome
        self._finished()

    def _finished(self) -> None:
        # A delivery references its batch, which no longer needs its records.
        self._count = self.count
        self._builder = None
        self.data = None
        callbacks, self._when_done = self._when_done, []
        for callback in callbacks:
            callback()
        if self._parent is not None and self._parent.is_done:
            self._parent._finished()  # noqa: SLF001

    def outcome_of(self, index: int) -> tuple[Acknowledged | Refused, int]:
        """The outcome of one record, and its index in the batch in which it was finally sent."""
        if isinstance(self.outcome, Split):
            for part in self.outcome.parts:
                if index < part.count:
                    return part.outcome_of(index)
                index -= part.count
        if self.outcome is None or isinstance(self.outcome, Split):
            raise RuntimeError("a batch that is not done has no outcome")
        return self.outcome, index

    def observe(self, index: int) -> None:
        """Mark the record's outcome as awaited: send at once, and do not report its failure elsewhere."""
        if isinstance(self.outcome, Split):
            for part in self.outcome.parts:
                if index < part.count:
                    part.observe(index)
                    return
                index -= part.count
        self.awaited += 1
        self.hurry()

    def observe_all(self) -> None:
        """Like `observe`, for all records of the batch."""
        for part in self.parts():
            part.awaited = part.count
            part.hurry()

    def parts(self) -> Iterator[Batch]:
        """The batches that it was split into, or itself."""
        if isinstance(self.outcome, Split):
            for part in self.outcome.parts:
                yield from part.parts()
        else:
            yield self

    def hurry(self) -> None:
        """Stop waiting for more records."""
        if not self.is_urgent:
            self.is_urgent = True
            self._urge()

    def split(self) -> tuple[Batch, Batch]:
        """Split into two halves, which share the sequence numbers."""
        if self.data is None:
            raise RuntimeError("only a batch that was sent can be split")
        records = RecordReader(self.data).take(self.count)
        middle = self.count // 2
        halves = self._part(records[:middle], 0), self._part(records[middle:], middle)
        # Only the number of awaited records is known, not which ones.
        halves[0].awaited = min(self.awaited, middle)
        halves[1].awaited = self.awaited - halves[0].awaited
        self.outcome = Split(halves)
        self.data = None
        return halves

    def _part(self, records: list, first: int) -> Batch:  # type: ignore[type-arg]
        old = self._records
        builder = BatchBuilder(old.compression, compression_level=old.compression_level)
        for record in records:
            builder.append(record.timestamp, record.key, record.value, record.headers)
        part = Batch(self.topic, self.partition, builder, self.begun_s, self._urge)
        part.is_urgent = True
        part.order = (*self.order, first)
        part._parent = self  # noqa: SLF001
        if self.base_sequence != NO_SEQUENCE:
            part.base_sequence = advance(self.base_sequence, first)
        return part


def advance(sequence: int, count: int) -> int:
    """The next sequence number, which wraps around to 0 after the largest int32."""
    return (sequence + count) & 0x7FFFFFFF
