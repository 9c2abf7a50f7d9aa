"""The rules of the order service, independent of its client."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

ORDERS: Final = "orders"
INVOICES: Final = "invoices"
REJECTED: Final = "orders.rejected"
GROUP: Final = "billing"


class NotDelivered(Exception):
    """Kafka did not accept an invoice. The order is not committed, and is redelivered."""


class Outgoing(NamedTuple):
    topic: str
    value: bytes


class Billing:
    """An invoice for each order; duplicates are not billed again, and invalid orders are set aside."""

    def __init__(self) -> None:
        self._billed: set[str] = set()

    def answer(self, value: bytes | None) -> Outgoing | None:
        """The record to write for it, if any."""
        try:
            order = json.loads(value or b"")
            number, cents = str(order["number"]), int(order["cents"])
        except (ValueError, KeyError, TypeError):
            return Outgoing(REJECTED, value or b"")
        if number in self._billed:
            return None
        return Outgoing(INVOICES, json.dumps({"order": number, "cents": cents}).encode())

    def delivered(self, outgoing: Outgoing) -> None:
        if outgoing.topic == INVOICES:
            self._billed.add(json.loads(outgoing.value)["order"])
