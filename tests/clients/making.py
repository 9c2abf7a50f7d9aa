"""Common operations of the tests, one function each."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.broker import making
from tests.broker.raw_client import RawClient

from .adapters.base import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .adapters.base import Consumer, Received


def create_topic(servers: str, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
    with RawClient(servers) as client:
        making.create_topic(client, name, partitions, configs)


def until(claim: Callable[[], bool], what: str = "the condition") -> None:
    """Return once the condition holds; evaluating it takes time, so there is no pause."""
    deadline = time.monotonic() + PATIENCE_S
    while not claim():
        assert time.monotonic() < deadline, f"{what} did not happen"


def receive(consumer: Consumer, count: int) -> list[Received]:
    """Poll until this many records have arrived; may return more."""
    received: list[Received] = []

    def are_here() -> bool:
        received.extend(consumer.poll())
        return len(received) >= count

    until(are_here, f"{count} records (there are {len(received)})")
    return received
