"""A simulated shop: orders, payments and clicks, determined by the seed. Its minutes last a second.

Some events come late: most of them soon enough for the watermark, a few not.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import sin
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

OPENS: Final = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)
ITEMS: Final = {"coffee": 3.2, "tea": 2.8, "bread": 4.5, "cake": 5.9, "juice": 3.9, "soup": 7.4}
_METHODS: Final = ("card", "cash", "voucher")


@dataclass(frozen=True, slots=True)
class Event:
    topic: str
    key: bytes
    value: bytes
    is_late: bool = False
    """By so much that it need not be counted."""


class Shop:
    def __init__(self, seed: int = 1, orders_per_minute: int = 40) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - not for secrets
        self._orders_per_minute = orders_per_minute
        self._next_id = 0

    def minute(self, number: int) -> Iterator[Event]:
        """The events of one minute of the shop's day, in the order they are sent."""
        begins = OPENS + timedelta(minutes=number)
        rush = 1 + 0.6 * sin(number / 4)
        for _ in range(round(self._orders_per_minute * rush)):
            at = begins + timedelta(seconds=self._chance.random() * 60)
            yield from self._visit(at)

    def after_hours(self, number: int) -> Iterator[Event]:
        """The clock continues with few visitors, so that the last minutes of the day pass the watermark."""
        for minute in range(number + 10, number + 40, 10):
            yield from self._visit(OPENS + timedelta(minutes=minute))

    def _visit(self, at: datetime) -> Iterator[Event]:
        customer = f"customer-{self._chance.randrange(500)}"
        for _ in range(self._chance.randrange(1, 6)):
            yield _event("clicks", customer, page=self._chance.choice(list(ITEMS)), at=_text(at))
        item = self._chance.choice(list(ITEMS))
        self._next_id += 1
        order = {"id": self._next_id, "customer": customer, "item": item, "price": ITEMS[item]}
        is_late = self._chance.random() < 0.01
        lag = timedelta(minutes=20 if is_late else self._chance.choice([0] * 9 + [2]))
        yield _event("orders", str(self._next_id), is_late=is_late, **order, at=_text(at - lag))
        if self._chance.random() < 0.9:
            method = self._chance.choice(_METHODS)
            paid = {"order_id": self._next_id, "method": method, "at": _text(at - lag + timedelta(seconds=30))}
            yield _event("payments", str(self._next_id), is_late=is_late, **paid)


def _text(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _event(topic: str, key: str, *, is_late: bool = False, **fields: object) -> Event:
    return Event(topic, key.encode(), json.dumps(fields).encode(), is_late)
