"""A task's ranges of offsets. From the broker, the next fetches are under way while Spark takes the rows."""

from __future__ import annotations

import gc
from time import monotonic
from typing import TYPE_CHECKING, Final

from ottla.client.errors import BrokerUnavailable, OffsetOutOfRange, RequestTimedOut
from ottla.spark.errors import aged_out, cut_short, made_again
from ottla.spark.kafka_settings import consumer_options
from ottla.spark.link import link_to
from ottla.spark.reader.losing import lose
from ottla.spark.reader.ranges import OffsetRange
from ottla.spark.reader.rows import RowMaker
from ottla.spark.reader.topic_layout import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from ottla.client.blocking.background import Background
    from ottla.client.client import Client
    from ottla.client.consumer.consumer import Consumer
    from ottla.client.options import ConsumerOptions
    from ottla.spark.reader.options import SourceOptions

_FETCH_BYTES: Final = 4 << 20
_BUFFERS: Final = 2
_WAIT_MS: Final = 100
"""How long to wait for records before looking whether there are none to come."""
_PATIENCE_S: Final = 2.0
"""After this time without a record, check whether the partition still has these offsets."""


def read_ranges(ranges: Iterable[OffsetRange], options: SourceOptions, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of a task, one range after the other."""
    for each in ranges:
        yield from read_range(each, options, schema)
    _spare_the_collector()


def _spare_the_collector() -> None:
    """Exclude imported modules from the garbage collection that Spark runs after every task."""
    if gc.get_freeze_count() == 0:
        gc.freeze()


def read_range(wanted: OffsetRange, options: SourceOptions, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of this range. Deleted records raise DataLoss or are skipped, depending on failOnDataLoss."""
    if wanted.files:
        from ottla.spark.archive.reading import archived_rows

        yield from archived_rows(wanted, options, RowMaker(wanted.at, schema))
        return
    link = link_to(options.kafka)
    consumer = link.call(_begin(link.client, wanted, options))
    if consumer is None:
        lose(made_again(wanted.at.topic, f"{wanted.start} to {wanted.end - 1} of {wanted.at}"), options)
        return
    try:
        maker = RowMaker(wanted.at, schema)
        yield from _RangeReader(link, consumer, wanted, options).rows(maker)
    finally:
        link.call(consumer.close())


async def _begin(client: Client, wanted: OffsetRange, options: SourceOptions) -> Consumer[bytes, bytes] | None:
    """A consumer that reads the range from its start; None if its topic was re-created."""
    await client.router.refresh([wanted.at.topic])
    known = client.router.view.topics.get(wanted.at.topic)
    if known is not None and known.topic_id != wanted.topic_id:
        return None
    consumer: Consumer[bytes, bytes] = client.consumer(**_consumer_options(options))
    try:
        await consumer.assign([wanted.at])
        # In the same turn of the loop, or it looks for an offset to begin at, and finds none.
        consumer.seek(wanted.at, wanted.start)
    except BaseException:
        await consumer.close()
        raise
    return consumer


def _consumer_options(options: SourceOptions) -> ConsumerOptions:
    defaults: ConsumerOptions = {
        "auto_offset_reset": "none",
        "consumer_max_bytes": _FETCH_BYTES,
        "consumer_queue_buffers": _BUFFERS,
    }
    return {**defaults, **consumer_options(options.kafka)}


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
        while self._position < self._end:
            try:
                table, position = self._link.call(self._fetch())
            except OffsetOutOfRange:
                yield from self._archived_meanwhile(maker)
                self._find_what_is_left()
                continue
            for records in table.to_batches():
                yield from maker.rows(self._cut(records))
            self._advance(position)

    async def _fetch(self) -> tuple[pa.Table, int]:
        """Records, and where the next ones are."""
        table = await self._consumer.fetch_arrow(timeout_ms=_WAIT_MS)
        return table, await self._consumer.position(self._at)

    def _seek(self, offset: int) -> None:
        self._position = offset
        self._link.do(self._consumer.seek, self._at, offset)

    def _cut(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """Without the records past the end of the range."""
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
                f"{self._at}: nothing came from offset {self._position} on within {self._options.poll_timeout_s:g} s "
                "(see kafkaConsumer.pollTimeoutMs)"
            )
        elif monotonic() - self._last_progress_s > _PATIENCE_S:
            self._see_the_end()

    def _see_the_end(self) -> None:
        """A partition that is shorter now than when the range was planned would be waited for in vain."""
        try:
            latest = Cluster(self._link).latest([self._at])[self._at]
        except BrokerUnavailable:
            return  # it may be back before the patience for polls is over
        if latest < self._end:
            lose(cut_short(self._at, self._end - 1, latest), self._options)
            self._end = latest

    def _archived_meanwhile(self, maker: RowMaker) -> Iterator[pa.RecordBatch]:
        """What was dropped from the topic after the range was planned, if an archive has it."""
        if self._options.archive is None:
            return
        from ottla.spark.archive.reading import archived_rows

        earliest = Cluster(self._link).earliest([self._at])[self._at]
        gone = OffsetRange(self._at, self._position, min(earliest, self._end))
        if gone.size > 0:
            yield from archived_rows(gone, self._options, maker)
            self._seek(gone.end)

    def _find_what_is_left(self) -> None:
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
