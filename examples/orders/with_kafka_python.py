"""The order service with kafka-python: reads orders, and writes an invoice for each before it commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.errors import KafkaError

from examples.orders.rules import GROUP, ORDERS, Billing, NotDelivered

if TYPE_CHECKING:
    from typing import Self

    from examples.orders.rules import Outgoing

_PATIENCE_S: Final = 30


class OrderService:
    def __init__(self, servers: str, **options: Any) -> None:  # noqa: ANN401 - of kafka-python
        self._servers = servers
        self._options = options
        self._billing = Billing()

    def __enter__(self) -> Self:
        common = {"bootstrap_servers": self._servers, **self._options}
        self._consumer = KafkaConsumer(
            ORDERS, group_id=GROUP, auto_offset_reset="earliest", enable_auto_commit=False, **common
        )
        self._producer = KafkaProducer(enable_idempotence=True, **common)
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.close()
        self._consumer.close()

    def handle_one(self, timeout_s: float = 1.0) -> bool:
        """Handle one order; False if there was none."""
        polled = self._consumer.poll(timeout_ms=round(timeout_s * 1000), max_records=1)
        if not polled:
            return False
        [[message]] = polled.values()
        outgoing = self._billing.answer(message.value)
        if outgoing is not None:
            self._write(outgoing)
            self._billing.delivered(outgoing)
        at = TopicPartition(message.topic, message.partition)
        self._consumer.commit({at: OffsetAndMetadata(message.offset + 1, "", -1)})
        return True

    def _write(self, outgoing: Outgoing) -> None:
        try:
            self._producer.send(outgoing.topic, outgoing.value).get(_PATIENCE_S)
        except KafkaError as refused:
            raise NotDelivered(f"{outgoing.topic}: {refused}") from refused
