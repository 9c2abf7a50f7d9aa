"""`ottla.Producer`: the blocking producer."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic

from ottla.client.blocking.background import Background
from ottla.client.blocking.options import BlockingProducerOptions, split
from ottla.client.config import ProducerConfig
from ottla.client.typing import K, V

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self, Unpack

    import pyarrow as pa

    from ottla.client.group.interface import GroupProgress
    from ottla.client.producer.accumulator import Delivery
    from ottla.client.producer.columns import TableDelivery
    from ottla.client.serializers import Serializer
    from ottla.records.encode import Headers


class Producer(Generic[K, V]):
    """`with ottla.Producer("localhost:9092") as producer: producer.send("orders", b"two coffees")`.

    Connects when created. Leaving the block, or close(), sends buffered records.
    """

    def __init__(
        self,
        servers: str | Iterable[str],
        *,
        key_serializer: Serializer[K] | None = None,
        value_serializer: Serializer[V] | None = None,
        **options: Unpack[BlockingProducerOptions],
    ) -> None:
        client_options, own = split(options, ProducerConfig)
        self._background = Background("producer", servers, client_options)
        self._background.closes_with(self)
        make = self._background.client.producer
        try:
            self._producer = self._background.do(
                lambda: make(key_serializer=key_serializer, value_serializer=value_serializer, **own)
            )
            self._background.call(self._producer.start())
        except BaseException:
            self._background.close()
            raise
        self._offer = self._producer.offer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(  # noqa: PLR0913
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> Delivery:
        """Add a record to its partition's batch; blocks only if all buffers are full, or on first use of a topic.

        `.result()` of the returned delivery returns the record's offset or raises. Failures of other deliveries are
        raised by flush() and close().
        """
        delivery = self._offer(topic, value, key, partition, timestamp_ms, headers)
        if delivery is not None:
            return delivery
        return self._background.call(
            self._producer.send(topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers)
        )

    def send_arrow(self, topic: str, table: pa.Table | pa.RecordBatch) -> TableDelivery:
        """Send the rows of a table: its columns `value`, `key`, `headers`, `timestamp` and `partition`."""
        return self._background.call(self._producer.send_arrow(topic, table))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """`with producer.transaction():` commits the records of the block atomically; see the async producer."""
        transaction = self._producer.transaction()
        self._background.call(transaction.__aenter__())
        try:
            yield
        except BaseException as failed:
            self._background.call(transaction.__aexit__(type(failed), failed, failed.__traceback__))
            raise
        self._background.call(transaction.__aexit__(None, None, None))

    def send_offsets(self, progress: GroupProgress) -> None:
        """Commit a group's offsets with the transaction: `consumer.progress()`."""
        self._background.call(self._producer.send_offsets(progress))

    def partitions(self, topic: str) -> list[int]:
        """The partitions of this topic."""
        return self._background.call(self._background.client.partitions(topic))

    def flush(self) -> None:
        """Send everything now and block until it is acknowledged; raises DeliveryFailed like the async producer."""
        self._background.call(self._producer.flush())

    def close(self) -> None:
        """Send buffered records and close. Idempotent."""
        self._background.close()
