"""The order service with confluent-kafka: reads orders, and writes an invoice for each before it commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Consumer, Producer

from examples.orders.rules import GROUP, ORDERS, Billing, NotDelivered

if TYPE_CHECKING:
    from typing import Self

    from confluent_kafka import KafkaError

    from examples.orders.rules import Outgoing

_PATIENCE_S: Final = 30


class OrderService:
    def __init__(self, servers: str, **options: Any) -> None:  # noqa: ANN401 - of librdkafka
        common = {"bootstrap.servers": servers, **options}
        self._consumer = Consumer(
            {**common, "group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        )
        self._producer = Producer({**common, "enable.idempotence": True, "linger.ms": 0})
        self._billing = Billing()

    def __enter__(self) -> Self:
        self._consumer.subscribe([ORDERS])
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def handle_one(self, timeout_s: float = 1.0) -> bool:
        """Handle one order; False if there was none."""
        message = self._consumer.poll(timeout_s)
        if message is None or message.error() is not None:
            return False
        outgoing = self._billing.answer(message.value())
        if outgoing is not None:
            self._write(outgoing)
            self._billing.delivered(outgoing)
        self._consumer.commit(message, asynchronous=False)
        return True

    def _write(self, outgoing: Outgoing) -> None:
        failures: list[KafkaError] = []
        self._producer.produce(*outgoing, on_delivery=lambda error, _: error and failures.append(error))
        unsent = self._producer.flush(_PATIENCE_S)
        if unsent or failures:
            raise NotDelivered(f"{outgoing.topic}: {failures[0].str() if failures else 'no answer'}")
