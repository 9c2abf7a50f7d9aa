"""Committed records of a topic, from given offsets on."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final

from ottla.client.consumer.positions import EARLIEST, LATEST, offsets_at
from ottla.client.errors import OffsetOutOfRange, RequestTimedOut, broker_error
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.lake.errors import LakeError, another_topic, gap, shorter

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ottla.client.blocking.background import Background
    from ottla.client.consumer.consumer import Consumer
    from ottla.client.view import TopicView
    from ottla.lake.covered import Covered

_FETCH_BYTES: Final = 8 << 20
_WAIT_MS: Final = 100
_PATIENCE_S: Final = 120.0
_READ_COMMITTED: Final = 1


class TopicSource:
    def __init__(self, link: Background, topic: str, *, allows_gaps: bool = False) -> None:
        self._link = link
        self._topic = topic
        self._allows_gaps = allows_gaps
        self._consumer: Consumer[bytes, bytes] | None = None
        self._positions: dict[TopicPartition, int] = {}
        self.targets: dict[int, int] = {}
        """The ends of the partitions when batches were last asked for."""

    @property
    def positions(self) -> dict[int, int]:
        """The next offset by partition."""
        return {at.partition: offset for at, offset in self._positions.items()}

    def topic_id(self) -> str:
        """In hexadecimal digits; empty if the broker has no topic ids."""
        found: bytes = self._view().topic_id
        return found.hex() if any(found) else ""

    def begin(self, covered: Covered, table: str) -> None:
        """Read on from the offsets that a table has."""
        self.close()
        topic_id = self.topic_id()
        if topic_id and covered.topic_id and topic_id != covered.topic_id:
            raise another_topic(table, self._topic)
        self._positions = self._starts(covered.partitions)
        self._assign()

    def batches(self, most_bytes: int) -> Iterator[pa.RecordBatch]:
        """The records up to the current end of the topic, each batch of one partition; fewer if they are many."""
        self._look_for_partitions()
        targets = self._offsets(LATEST)
        self.targets = {at.partition: end for at, end in targets.items()}
        for at, end in targets.items():
            if end < self._positions[at]:
                raise shorter(self._topic, at.partition, self._positions[at], end)
        taken, last_progress_s = 0, monotonic()
        while taken < most_bytes and any(offset < targets[at] for at, offset in self._positions.items()):
            table = self._fetch()
            before = sum(self._positions.values())
            for batch in table.to_batches():
                taken += batch.nbytes
                yield batch
            self._advance()
            if sum(self._positions.values()) > before:
                last_progress_s = monotonic()
            elif monotonic() - last_progress_s > _PATIENCE_S:
                raise RequestTimedOut(f"{self._topic}: no records arrived within {_PATIENCE_S:g} s")

    def ends(self) -> dict[int, int]:
        """The current end of each partition: its last stable offset."""
        if not self._positions:
            self._positions = {TopicPartition(self._topic, each): 0 for each in self._view().partitions}
        return {at.partition: end for at, end in self._offsets(LATEST).items()}

    def close(self) -> None:
        if self._consumer is not None:
            self._link.call(self._consumer.close())
            self._consumer = None

    def _view(self) -> TopicView:
        router = self._link.client.router
        self._link.call(router.refresh([self._topic]))
        view = router.view.topics.get(self._topic)
        if view is None or view.error is not ErrorCode.NONE:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if view is None else view.error
            raise broker_error(code, f"topic {self._topic!r}")
        return view

    def _starts(self, covered: dict[int, int]) -> dict[TopicPartition, int]:
        self._positions = {TopicPartition(self._topic, each): 0 for each in self._view().partitions}
        starts = {}
        for at, earliest in self._offsets(EARLIEST).items():
            wanted = covered.get(at.partition, earliest)
            if earliest > wanted and not self._allows_gaps:
                raise gap(self._topic, at.partition, wanted, earliest)
            starts[at] = max(wanted, earliest)
        return starts

    def _offsets(self, which: int) -> dict[TopicPartition, int]:
        wanted = dict.fromkeys(self._positions, which)
        return self._link.call(offsets_at(self._link.client.router, wanted, _READ_COMMITTED))

    def _assign(self) -> None:
        self._consumer = self._link.do(
            lambda: self._link.client.consumer(
                auto_offset_reset="none", isolation_level="read_committed", consumer_max_bytes=_FETCH_BYTES
            )
        )
        self._link.call(self._seek(self._consumer))

    async def _seek(self, consumer: Consumer[bytes, bytes]) -> None:
        await consumer.assign(self._positions)
        # In the same turn of the loop, before it looks for an offset to begin at.
        for at, offset in self._positions.items():
            consumer.seek(at, offset)

    def _look_for_partitions(self) -> None:
        new = set(self._view().partitions) - {at.partition for at in self._positions}
        if new:
            self._positions = self._starts(self.positions)
            self.close()
            self._assign()

    def _fetch(self) -> pa.Table:
        assert self._consumer is not None  # noqa: S101 - begin() was called
        try:
            return self._link.call(self._consumer.fetch_arrow(timeout_ms=_WAIT_MS))
        except OffsetOutOfRange as gone:
            raise LakeError(
                f"{self._topic}: records were deleted from the topic before they were read: {gone}"
            ) from gone

    def _advance(self) -> None:
        """Offsets without records count, too: end markers, aborted and compacted records."""
        assert self._consumer is not None  # noqa: S101
        for at in self._positions:
            self._positions[at] = self._link.call(self._consumer.position(at))
