"""The order service with aiokafka: reads orders, and writes an invoice for each before it commits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from examples.orders.rules import GROUP, ORDERS, Billing, NotDelivered

if TYPE_CHECKING:
    from typing import Self

    from examples.orders.rules import Outgoing


class OrderService:
    def __init__(self, servers: str, **options: Any) -> None:  # noqa: ANN401 - of aiokafka
        self._servers = servers
        self._options = options
        self._billing = Billing()

    async def __aenter__(self) -> Self:
        common = {"bootstrap_servers": self._servers, **self._options}
        self._consumer = AIOKafkaConsumer(
            ORDERS, group_id=GROUP, auto_offset_reset="earliest", enable_auto_commit=False, **common
        )
        self._producer = AIOKafkaProducer(enable_idempotence=True, **common)
        await self._producer.start()
        await self._consumer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._consumer.stop()
        await self._producer.stop()

    async def handle_one(self, timeout_s: float = 1.0) -> bool:
        """Handle one order; False if there was none."""
        try:
            async with asyncio.timeout(timeout_s):
                message = await self._consumer.getone()
        except TimeoutError:
            return False
        outgoing = self._billing.answer(message.value)
        if outgoing is not None:
            await self._write(outgoing)
            self._billing.delivered(outgoing)
        await self._consumer.commit({TopicPartition(message.topic, message.partition): message.offset + 1})
        return True

    async def _write(self, outgoing: Outgoing) -> None:
        try:
            await self._producer.send_and_wait(*outgoing)
        except KafkaError as refused:
            raise NotDelivered(f"{outgoing.topic}: {refused}") from refused
