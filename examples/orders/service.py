"""Reads orders, writes an invoice for each, and sets aside what is no order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Consumer, Producer

if TYPE_CHECKING:
    from typing import Self

    from confluent_kafka import KafkaError

ORDERS: Final = "orders"
INVOICES: Final = "invoices"
REJECTED: Final = "orders.rejected"
GROUP: Final = "billing"
_DELIVERY_PATIENCE_S: Final = 30


class NotDelivered(Exception):
    """Kafka did not take an invoice. The order is not committed, and comes again."""


class OrderService:
    """Each order is billed before it is committed, so that none is lost. One that comes again is not billed again."""

    def __init__(self, servers: str, **options: Any) -> None:  # noqa: ANN401 - of librdkafka
        common = {"bootstrap.servers": servers, **options}
        self._consumer = Consumer(
            {**common, "group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        )
        self._producer = Producer({**common, "enable.idempotence": True, "linger.ms": 0})
        self._billed: set[str] = set()
        self._consumer.subscribe([ORDERS])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def handle_one(self, timeout_s: float = 1.0) -> bool:
        """Whether there was something to do."""
        message = self._consumer.poll(timeout_s)
        if message is None or message.error() is not None:
            return False
        try:
            order = json.loads(message.value() or b"")
            number, cents = str(order["number"]), int(order["cents"])
        except (ValueError, KeyError, TypeError):
            self._write(REJECTED, message.value())
        else:
            self._bill(number, cents)
        self._consumer.commit(message, asynchronous=False)
        return True

    def _bill(self, number: str, cents: int) -> None:
        if number not in self._billed:
            self._write(INVOICES, json.dumps({"order": number, "cents": cents}).encode())
            self._billed.add(number)

    def _write(self, topic: str, value: bytes | None) -> None:
        failures: list[KafkaError] = []
        self._producer.produce(topic, value, on_delivery=lambda error, _: error and failures.append(error))
        unsent = self._producer.flush(_DELIVERY_PATIENCE_S)
        if unsent or failures:
            raise NotDelivered(f"{topic}: {failures[0].str() if failures else 'no answer'}")
