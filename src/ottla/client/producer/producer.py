"""Sends records: batched, bundled, numbered, and acknowledged one by one if you ask."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic

from ottla.client.errors import ClientClosed, ClientError, SerializationFailed, UnknownTopic
from ottla.client.producer.delivery import finished
from ottla.client.producer.sender import Sender
from ottla.client.typing import K, V

if TYPE_CHECKING:
    from typing import Self

    import pyarrow as pa

    from ottla.client.config import ProducerConfig
    from ottla.client.producer.accumulator import Delivery, TopicBuffers
    from ottla.client.producer.columns import TableDelivery
    from ottla.client.router import Router
    from ottla.client.serializers import Serializer
    from ottla.records.encode import Headers


class Producer(Generic[K, V]):
    """`async with client.producer() as producer:`; leaving the block sends what is left."""

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
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._takes_bytes = key_serializer is None and value_serializer is None
        self._sender = Sender(router, config)
        self._append = self._sender.accumulator.append
        self._topics = self._sender.topics

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
        """Put a record into its partition's batch; wait only if there is no room, or for a topic's first time.

        Await what is returned to know where the record is, or why it is nowhere. Who does not is told of failures
        by flush() and close().
        """
        delivery = self.offer(topic, value, key, partition, timestamp_ms, headers)
        if delivery is None:
            key_bytes, value_bytes = self._serialized(topic, key, value)
            return await self._send_when_possible(topic, partition, timestamp_ms, key_bytes, value_bytes, headers)
        if self._sender.has_full_batch:
            self._sender.has_full_batch = False
            await asyncio.sleep(0)
        return delivery

    def offer(  # noqa: PLR0913
        self,
        topic: str,
        value: V | None,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> Delivery | None:
        """Send if that needs no waiting; None, and nothing is sent, if it does. Any thread may call this."""
        buffers = self._topics.get(topic)
        if buffers is None:
            return None
        data: tuple[Any, Any] = (key, value) if self._takes_bytes else self._serialized(topic, key, value)
        try:
            return self._append(buffers, partition, timestamp_ms, *data, headers)
        except UnknownTopic:
            return None  # it may be a new partition

    async def send_arrow(self, topic: str, table: pa.Table | pa.RecordBatch) -> TableDelivery:
        """Send a table's rows as records, without an object for each. Needs pyarrow.

        Columns: `value`; and if they are there `key`, `timestamp`, `headers` and `partition`, which is chosen by the
        key where it is null or missing. Serializers are not used. Await what is returned for each batch's place.
        """
        from ottla.client.producer.columns import send_table

        return await send_table(self._sender, await self._known(topic, None), table)

    async def _send_when_possible(  # noqa: PLR0913
        self,
        topic: str,
        partition: int | None,
        timestamp_ms: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> Delivery:
        buffers = await self._known(topic, partition)
        while (delivery := self._append(buffers, partition, timestamp_ms, key, value, headers)) is None:
            await self._sender.room(topic)
            self._sender.refuse_if_closed()
        return delivery

    async def _known(self, topic: str, partition: int | None) -> TopicBuffers:
        self._sender.refuse_if_closed()
        buffers = self._topics.get(topic)
        if buffers is None:
            buffers = self._sender.learn_topic(await self._router.topic(topic, allow_auto_create=True))
            self._sender.refuse_if_closed()
        elif partition is not None and partition >= buffers.count:
            await self._router.refresh([topic])
        return buffers

    def _serialized(self, topic: str, key: K | None, value: V | None) -> tuple[Any, Any]:
        key_bytes: Any = key
        value_bytes: Any = value
        if self._key_serializer is not None and key is not None:
            key_bytes = _serialize(self._key_serializer, key, "key", topic)
        if self._value_serializer is not None and value is not None:
            value_bytes = _serialize(self._value_serializer, value, "value", topic)
        return key_bytes, value_bytes

    async def flush(self) -> None:
        """Send everything now and wait until it is acknowledged.

        Raises DeliveryFailed if records failed, since the last flush, whose deliveries nobody awaited.
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
        return self._sender.is_closed

    async def close(self) -> None:
        """Send what is left, as flush() does, and take no more. May be called again."""
        if self._sender.is_closed:
            return
        self._sender.is_closed = True
        self._topics = {}
        try:
            await self.flush()
        finally:
            for queue in self._sender.queues():
                queue.abandon(ClientClosed("the producer was closed before this was acknowledged"))
            await self._sender.close()


def _serialize(serializer: Serializer[Any], thing: object, what: str, topic: str) -> bytes:
    try:
        return serializer(thing)
    except ClientError:
        raise
    except Exception as failed:
        raise SerializationFailed(f"a {what} for {topic} cannot be serialized: {failed}") from failed
