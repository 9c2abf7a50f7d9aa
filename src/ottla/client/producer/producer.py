"""The producer: batched, bundled, idempotent, with an acknowledgement per record if awaited."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Generic

from ottla.client.errors import ClientClosed, ClientError
from ottla.client.producer.delivery import finished
from ottla.client.producer.sender import Sender
from ottla.client.producer.serializing import Serializing
from ottla.client.typing import K, V

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from typing import Self

    import pyarrow as pa

    from ottla.client.config import ProducerConfig
    from ottla.client.group.interface import GroupProgress
    from ottla.client.producer.accumulator import Delivery, TopicBuffers
    from ottla.client.producer.columns import TableDelivery
    from ottla.client.producer.transactions import Transactions
    from ottla.client.router import Router
    from ottla.client.serializers import Serializer
    from ottla.records.encode import Headers


class Producer(Generic[K, V]):
    """`async with client.producer() as producer:`; leaving the block sends buffered records."""

    def __init__(
        self,
        router: Router,
        config: ProducerConfig,
        *,
        key_serializer: Serializer[K] | None = None,
        value_serializer: Serializer[V] | None = None,
    ) -> None:
        self.config = config
        self._router = router
        self._serializing = Serializing(key_serializer, value_serializer)
        is_needed = self._serializing.is_needed
        self._sender = Sender(router, config, (None, None) if is_needed else (key_serializer, value_serializer))
        self._accumulator = self._sender.accumulator
        self._offer = self._serializing.offering(self._accumulator.offer) if is_needed else self._accumulator.offer
        self.offer: Callable[..., Delivery | None] = self._offer
        """Send if that needs no waiting: for other threads than the event loop's. See Accumulator."""
        if self._sender.transactions is not None:
            self.offer = self._offer_in_transaction

    async def start(self) -> None:
        """Get a producer id, if idempotence needs one."""
        if self.config.idempotence:
            await self._sender.identify()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(  # noqa: PLR0913
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> Delivery:
        """Add a record to its partition's batch; waits only if all buffers are full, or on first use of a topic.

        Await the returned delivery for the record's offset or error. Failures of other deliveries are raised
        by flush() and close().
        """
        delivery = self.offer(topic, value, key, partition, timestamp_ms, headers)
        if delivery is None:
            await self._serializing.prepare(topic, key, value)
            *data, headers = self._serializing.serialized(topic, key, value, headers)
            return await self._send_when_possible(topic, partition, timestamp_ms, (data[0], data[1]), headers)
        if self._sender.has_full_batch:
            self._sender.has_full_batch = False
            await asyncio.sleep(0)
        return delivery

    async def send_arrow(self, topic: str, table: pa.Table | pa.RecordBatch) -> TableDelivery:
        """Send a table's rows as records, without an object per row. Needs pyarrow.

        Columns: `value`; optionally `key`, `timestamp`, `headers` and `partition`, which is chosen by the key if null
        or missing. Serializers are not used. Await the returned delivery for each batch's offsets.
        """
        from ottla.client.producer.columns import send_table

        if self._sender.transactions is not None:
            self._sender.transactions.refuse_if_not_open()
        return await send_table(self._sender, await self._known(topic, None), table)

    # Transactions

    def transaction(self) -> AbstractAsyncContextManager[None]:
        """`async with producer.transaction():` commits the records of the block atomically.

        It commits at the end of the block; an error of the block or of the commit aborts it and is raised.
        """
        return self._transaction()

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[None]:
        transactions = self._transactions
        transactions.begin()
        try:
            yield
            await transactions.commit()
        except BaseException:
            if transactions.is_open:
                await transactions.abort()
            raise

    async def send_offsets(self, progress: GroupProgress) -> None:
        """Commit a group's offsets with the transaction: `consumer.progress()`."""
        await self._transactions.send_offsets(progress)

    @property
    def _transactions(self) -> Transactions:
        if self._sender.transactions is None:
            raise ClientError("transactions need client.producer(transactional_id=…)")
        return self._sender.transactions

    def _offer_in_transaction(  # noqa: PLR0913
        self,
        topic: str,
        value: V | None,
        key: K | None,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers,
    ) -> Delivery | None:
        self._transactions.refuse_if_not_open()
        return self._offer(topic, value, key, partition, timestamp_ms, headers)

    # Sending

    async def _send_when_possible(
        self,
        topic: str,
        partition: int | None,
        timestamp_ms: int | None,
        data: tuple[bytes | None, bytes | None],
        headers: Headers,
    ) -> Delivery:
        buffers = await self._known(topic, partition)
        append = self._accumulator.append
        while (delivery := append(buffers, partition, timestamp_ms, *data, headers)) is None:
            await self._sender.room(topic)
            self._sender.refuse_if_closed()
        return delivery

    async def _known(self, topic: str, partition: int | None) -> TopicBuffers:
        self._sender.refuse_if_closed()
        buffers = self._sender.topics.get(topic)
        if buffers is None:
            buffers = self._sender.learn_topic(await self._router.topic(topic, allow_auto_create=True))
            self._sender.refuse_if_closed()
        elif partition is not None and partition >= buffers.count:
            await self._router.refresh([topic])
        return buffers

    async def flush(self) -> None:
        """Send everything now and wait until it is acknowledged.

        Raises DeliveryFailed if records have failed since the last flush whose deliveries were not awaited.
        """
        unfinished = [batch for queue in self._sender.queues() for batch in queue.unfinished()]
        for batch in unfinished:
            batch.hurry()
        for batch in unfinished:
            await finished(batch)
        if failed := self._sender.failures.take():
            raise failed

    @property
    def is_closed(self) -> bool:
        return bool(self._accumulator.is_closed)

    async def close(self) -> None:
        """Send buffered records, as flush() does, and close. Idempotent."""
        if self._accumulator.is_closed:
            return
        self._accumulator.is_closed = True
        try:
            if self._sender.transactions is not None:
                await self._sender.transactions.close()
            await self.flush()
        finally:
            for queue in self._sender.queues():
                queue.abandon(ClientClosed("the producer was closed before this was acknowledged"))
            await self._sender.close()
