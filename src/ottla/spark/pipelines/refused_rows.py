"""Sends rows rejected by a sink to the dead-letter topic, each once, with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.core.errors import OttlaError
from ottla.core.ids import TopicPartition
from ottla.spark.link import link_to
from ottla.spark.pipelines.databases.values import as_json
from ottla.spark.pipelines.limits import MOST_VALUE_BYTES
from ottla.spark.pipelines.sinks.batch import MicroBatch
from ottla.spark.pipelines.sinks.sink import NO_DEAD_LETTERS
from ottla.spark.pipelines.tables.staging import BatchId

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.client.client import Client
    from ottla.spark.pipelines.sinks.batch import RefusedRow

_PATIENCE_MS: Final = 2000
_BATCH: Final = "ottla.batch"


class RowRefused(OttlaError):
    """A sink without a dead-letter topic rejected a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRows:
    """The dead letters of one sink."""

    kafka: Mapping[str, str]
    topic: str
    pipeline: str
    sink: str

    def micro_batch(self, query: str, number: int, *, may_be_repeated: bool) -> MicroBatch:
        """A micro-batch whose rejected rows are delivered."""
        refuse = partial(self.deliver, batch=BatchId(query, number), may_be_repeated=may_be_repeated)
        return MicroBatch(query, number, refuse)

    def deliver(self, rows: Sequence[RefusedRow], batch: BatchId, *, may_be_repeated: bool) -> None:
        """Deliver in one transaction, before the sink commits: a repeated micro-batch finds its rows there."""
        if self.topic == NO_DEAD_LETTERS:
            first = f"{rows[0].reason}: {as_json(rows[0].row)[:200]}"
            raise RowRefused(f"[sink.{self.sink}] rejected {len(rows)} rows, and dead_letters is 'none': {first}")
        link = link_to(self.kafka)
        link.call(self._deliver(link.client, rows, batch, may_be_repeated=may_be_repeated))

    async def _deliver(
        self, client: Client, rows: Sequence[RefusedRow], batch: BatchId, *, may_be_repeated: bool
    ) -> None:
        mark = f"{batch.query}/{batch.number}".encode()
        # The producer first: it ends the open transaction of a killed one, so that later reads are final.
        async with client.producer(transactional_id=f"ottla-refused-{self.pipeline}.{self.sink}") as producer:
            if may_be_repeated and await _has(client, self.topic, mark):
                return
            async with producer.transaction():
                for row in rows:
                    value = as_json(row.row).encode()[:MOST_VALUE_BYTES]
                    # The end of the transaction confirms the delivery.
                    _ = await producer.send(self.topic, value, headers=self._headers(row, mark))

    def _headers(self, row: RefusedRow, mark: bytes) -> list[tuple[str, bytes | None]]:
        headers = {"ottla.error": row.reason, "ottla.pipeline": self.pipeline, "ottla.sink": self.sink}
        return [*((name, value.encode()) for name, value in headers.items()), (_BATCH, mark)]


async def _has(client: Client, topic: str, mark: bytes) -> bool:
    places = [TopicPartition(topic, each) for each in await client.partitions(topic)]
    async with client.consumer(auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        await consumer.assign(places)
        while records := await consumer.poll(1000, _PATIENCE_MS):
            if any((_BATCH, mark) in record.headers for record in records):
                return True
    return False
