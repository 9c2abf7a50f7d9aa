"""Acquiring records for a share group member: batches as stored, and the acquired offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.batches.delays import delays_in
from ottla.broker.batches.inflating import AT_ONCE_BYTES
from ottla.records.batch import read_header
from ottla.records.compression import DecompressedTooLarge
from ottla.share.partition import Acquired

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.broker.share.shared import Shared
    from ottla.records.batch import BatchHeader
    from ottla.share.formats import StateKey
    from ottla.share.partition import Delay
    from ottla.share.settings import GroupSettings
    from ottla.storage.segment_files.txn_index import AbortedTransaction

_READS: Final = 32
_LOOKED_BYTES: Final = 4 << 20
"""After this many bytes without an available record, other requests are served."""
_LOOKING_BYTES: Final = 1 << 20
_INFLATED_BYTES: Final = 4 << 20
_READ_COMMITTED: Final = 1


class AcquireLimits(NamedTuple):
    member: str
    max_records: int
    max_bytes: int
    is_strict: bool
    """Whether to acquire exactly this many records; otherwise whole batches are acquired."""
    may_exceed: bool
    """Whether the first batch is returned regardless of its size."""


class FetchProgress:
    """The progress of a fetch over all its partitions."""

    __slots__ = ("inflated_bytes", "known", "large")

    def __init__(self) -> None:
        self.inflated_bytes = 0
        self.known: dict[tuple[StateKey, int], Sequence[Delay]] = {}
        """Delayed records in batches that were too large to inspect at once, by base offset."""
        self.large: dict[tuple[StateKey, int], tuple[memoryview, BatchHeader]] = {}
        """Batches to inspect next."""

    @property
    def is_over(self) -> bool:
        return self.inflated_bytes >= _INFLATED_BYTES


class Acquisition:
    __slots__ = ("acquired", "count", "is_unfinished", "pieces", "size")

    def __init__(self) -> None:
        self.pieces: list[tuple[memoryview, int, int]] = []
        """The records read, and the range to acquire."""
        self.acquired: list[Acquired] = []
        self.count = 0
        self.size = 0
        self.is_unfinished = False
        """Whether there is more to read, although nothing was found so far."""

    def add(self, data: memoryview, begin: int, end: int, got: Sequence[Acquired]) -> None:
        self.size += end - begin
        if self.pieces and self.pieces[-1][0] is data and self.pieces[-1][2] == begin:
            begin = self.pieces.pop()[1]
        self.pieces.append((data, begin, end))
        for one in got:
            self.count += one.size
            last = self.acquired[-1] if self.acquired else None
            if last is not None and (last.last + 1, last.deliveries) == (one.first, one.deliveries):
                self.acquired[-1] = Acquired(last.first, one.last, one.deliveries)
            else:
                self.acquired.append(one)

    @property
    def records(self) -> memoryview | bytes:
        slices = [data[begin:end] for data, begin, end in self.pieces]
        return slices[0] if len(slices) == 1 else b"".join(slices)


def acquire(
    shared: Shared, asked: AcquireLimits, settings: GroupSettings, now_ms: int, progress: FetchProgress
) -> Acquisition:
    """The records available now. Raises ApiError if the log cannot be read."""
    shared.follow_the_log()
    taking = _Acquiring(shared, asked, settings, now_ms, progress)
    for _ in range(_READS):
        if not taking.read_on():
            return taking.taken
    taking.taken.is_unfinished = not taking.taken.pieces
    return taking.taken


def available_bytes(shared: Shared, settings: GroupSettings) -> int:
    """The bytes from the first available record to the end, as Kafka counts them for `min_bytes`."""
    shared.follow_the_log()
    offset = shared.rules.wanted(settings.limits.in_flight)
    partition = shared.partition
    return (
        0 if offset is None else partition.log.size_between(offset, partition.readable_until(settings.isolation_level))
    )


class _Acquiring:
    def __init__(
        self, shared: Shared, asked: AcquireLimits, settings: GroupSettings, now_ms: int, progress: FetchProgress
    ) -> None:
        self.taken = Acquisition()
        self._shared = shared
        self._rules = shared.rules
        self._asked = asked
        self._limits = settings.limits
        self._isolation = settings.isolation_level
        self._until = shared.partition.readable_until(settings.isolation_level)
        self._now_ms = now_ms
        self._progress = progress
        self._looked_bytes = 0

    def read_on(self) -> bool:
        """Read the next batch. Returns whether to continue."""
        taken, asked = self.taken, self._asked
        offset = self._rules.wanted(self._limits.in_flight)
        room = asked.max_bytes - taken.size
        if offset is None or offset >= self._until or self._is_full or room <= 0:
            return False
        log = self._shared.partition.log
        data = log.read(offset, min(room, _LOOKING_BYTES), self._until)
        if not data or (len(data) > room and (taken.pieces or not asked.may_exceed)):
            return False
        aborted: Sequence[AbortedTransaction] = ()
        if self._isolation == _READ_COMMITTED:
            aborted = log.aborted_transactions(offset, self._until)
        self._looked_bytes += len(data)
        if not self._walk(data, offset, aborted):
            return False
        taken.is_unfinished = self._looked_bytes >= _LOOKED_BYTES and not taken.pieces
        return not taken.is_unfinished

    def _walk(self, data: memoryview, offset: int, aborted: Sequence[AbortedTransaction]) -> bool:
        end = 0
        while end < len(data):
            begin = end
            header = read_header(data, begin)
            end = begin + header.size
            if header.base_offset > offset:
                self._rules.miss(offset, min(header.base_offset, self._rules.end) - 1)
            if not self._look(data[begin:end], header, offset, aborted):
                return False
            offset = header.next_offset
            got = self._rules.acquire(
                header.base_offset, header.last_offset, self._asked.member, self._most(), self._limits, self._now_ms
            )
            if got:
                self.taken.add(data, begin, end, got)
            if self._is_full:
                return False
        return True

    @property
    def _is_full(self) -> bool:
        return self.taken.count >= min(self._asked.max_records, self._limits.in_flight)

    def _look(self, batch: memoryview, header: BatchHeader, offset: int, aborted: Sequence[AbortedTransaction]) -> bool:
        """Whether the record may be acquired: the window limits in-flight records."""
        rules = self._rules
        if not rules.is_unknown(min(offset, header.base_offset), header.last_offset):
            return True
        if header.last_offset >= rules.end and not rules.has_room(self._limits.in_flight):
            return False
        is_data = header.record_count > 0 and not header.is_control and not _is_aborted(header, aborted)
        delays = self._delays(batch, header) if is_data else ()
        if delays is None:
            self.taken.is_unfinished = not self.taken.pieces
            return False
        rules.look_at(offset, header.base_offset, header.last_offset, delays, is_data=is_data)
        return True

    def _delays(self, batch: memoryview, header: BatchHeader) -> Sequence[Delay] | None:
        """The delayed records of a batch; None if other requests should be served first."""
        progress = self._progress
        known = progress.known.get((self._shared.key, header.base_offset))
        if known is not None:
            return known
        if progress.is_over:
            return None
        try:
            found = delays_in(batch, header, self._now_ms, AT_ONCE_BYTES)
        except DecompressedTooLarge:
            progress.large[self._shared.key, header.base_offset] = memoryview(bytes(batch)), header
            return None
        progress.inflated_bytes += found.inflated_bytes
        return found.delays

    def _most(self) -> int:
        most = self._limits.in_flight
        return (min(self._asked.max_records, most) if self._asked.is_strict else most) - self.taken.count


def _is_aborted(header: BatchHeader, aborted: Sequence[AbortedTransaction]) -> bool:
    return header.is_transactional and any(
        one.producer_id == header.producer_id and one.first_offset <= header.base_offset <= one.last_offset
        for one in aborted
    )
