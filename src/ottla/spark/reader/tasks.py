"""Reads a task's offset ranges. The next fetches are in flight while Spark consumes the rows."""

from __future__ import annotations

import gc
import os
from time import monotonic
from typing import TYPE_CHECKING, Final

from ottla.client.errors import BrokerUnavailable, OffsetOutOfRange, RequestTimedOut
from ottla.spark.errors import aged_out, cut_short, topic_recreated
from ottla.spark.link import link_to
from ottla.spark.reader.consumers import consumer_of
from ottla.spark.reader.losing import lose
from ottla.spark.reader.ranges import OffsetRange
from ottla.spark.reader.rows import RowMaker
from ottla.spark.reader.topic_layout import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from ottla.client.blocking.background import Background
    from ottla.client.consumer.consumer import Consumer
    from ottla.spark.reader.options import SourceOptions

_WAIT_MS: Final = 100
"""How long to wait for records before checking whether there are any."""
_PATIENCE_S: Final = 2.0
"""After this time without a record, check whether the partition still has these offsets."""
_frozen: Final[set[int]] = set()
"""The processes in which imported modules are excluded from garbage collection."""


def read_ranges(ranges: Sequence[OffsetRange], options: SourceOptions, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of a task, one range after the other."""
    if live := {each.at.topic for each in ranges if not each.files}:
        link = link_to(options.kafka)
        link.call(link.client.router.refresh(live))
    for each in ranges:
        yield from _read_range(each, options, schema)
    _freeze_modules()


def _freeze_modules() -> None:
    """Exclude imported modules from the garbage collection that Spark runs after every task.

    Once per process: `gc.get_freeze_count` visits all frozen objects, which takes 8 ms.
    """
    if os.getpid() not in _frozen:
        gc.freeze()
        _frozen.add(os.getpid())


def _read_range(wanted: OffsetRange, options: SourceOptions, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of this range. Deleted records raise DataLoss or are skipped, depending on failOnDataLoss."""
    maker = RowMaker(wanted.at, schema)
    if wanted.files:
        from ottla.spark.archive.reading import archived_rows

        yield from archived_rows(wanted, options, maker)
        return
    link = link_to(options.kafka)
    known = link.client.router.view.topics.get(wanted.at.topic)
    if known is not None and known.topic_id != wanted.topic_id:
        lose(topic_recreated(wanted.at.topic, f"{wanted.start} to {wanted.end - 1} of {wanted.at}"), options)
        return
    with consumer_of(link, options) as consumer:
        yield from _RangeReader(link, consumer, wanted, options).rows(maker)


class _RangeReader:
    def __init__(
        self, link: Background, consumer: Consumer[bytes, bytes], wanted: OffsetRange, options: SourceOptions
    ) -> None:
        self._link = link
        self._consumer = consumer
        self._at = wanted.at
        self._end = wanted.end
        self._position = wanted.start
        self._options = options
        self._last_progress_s = monotonic()

    def rows(self, maker: RowMaker) -> Iterator[pa.RecordBatch]:
        self._link.call(self._begin())
        while self._position < self._end:
            try:
                table, position = self._link.call(self._fetch())
            except OffsetOutOfRange:
                yield from self._archived_meanwhile(maker)
                self._find_remaining()
                continue
            for records in table.to_batches():
                yield from maker.rows(self._cut(records))
            self._advance(position)

    async def _begin(self) -> None:
        await self._consumer.assign([self._at])
        # In the same iteration of the event loop, or the consumer would look up a start offset.
        self._consumer.seek(self._at, self._position, until=self._end)

    async def _fetch(self) -> tuple[pa.Table, int]:
        """Records, and the next offset."""
        table = await self._consumer.fetch_arrow(timeout_ms=_WAIT_MS)
        return table, await self._consumer.position(self._at)

    def _seek(self, offset: int) -> None:
        self._position = offset
        self._link.do(lambda: self._consumer.seek(self._at, offset, until=self._end))

    def _cut(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """The records without those beyond the end of the range."""
        offsets = records.column("offset")
        if len(offsets) and offsets[-1].as_py() >= self._end:
            return records.slice(0, int(offsets.to_numpy().searchsorted(self._end)))
        return records

    def _advance(self, position: int) -> None:
        """Offsets without records count, too: end markers and compacted records."""
        if position > self._position:
            self._position = position
            self._last_progress_s = monotonic()
        elif monotonic() - self._last_progress_s > self._options.poll_timeout_s:
            raise RequestTimedOut(
                f"{self._at}: no records from offset {self._position} on within {self._options.poll_timeout_s:g} s "
                "(see kafkaConsumer.pollTimeoutMs)"
            )
        elif monotonic() - self._last_progress_s > _PATIENCE_S:
            self._see_the_end()

    def _see_the_end(self) -> None:
        """Check whether the partition was truncated after the range was planned: waiting for it would be in vain."""
        try:
            latest = Cluster(self._link).latest([self._at])[self._at]
        except BrokerUnavailable:
            return  # it may be back before the poll timeout
        if latest < self._end:
            lose(cut_short(self._at, self._end - 1, latest), self._options)
            self._end = latest

    def _archived_meanwhile(self, maker: RowMaker) -> Iterator[pa.RecordBatch]:
        """Archived records that were deleted from the topic after the range was planned."""
        if self._options.archive is None:
            return
        from ottla.spark.archive.reading import archived_rows

        earliest = Cluster(self._link).earliest([self._at])[self._at]
        gone = OffsetRange(self._at, self._position, min(earliest, self._end))
        if gone.size > 0:
            yield from archived_rows(gone, self._options, maker)
            self._seek(gone.end)

    def _find_remaining(self) -> None:
        cluster = Cluster(self._link)
        earliest = cluster.earliest([self._at])[self._at]
        if earliest > self._position:
            lose(aged_out(self._at, self._position, self._end, earliest), self._options)
            self._seek(min(earliest, self._end))
            return
        latest = cluster.latest([self._at])[self._at]
        if latest < self._end:
            lose(cut_short(self._at, self._end - 1, latest), self._options)
            self._end = min(self._end, latest)
        self._seek(self._position)
