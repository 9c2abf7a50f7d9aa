"""`ottla` with a planted bug: a commit is acknowledged before it is replicated. The checker must catch it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.coordinators import transactions as transaction_coordinator
from ottla.cli.main import main

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition


async def _at_once(_broker: Broker, _partition: Partition, _offset: int) -> None:
    """Wait for nothing."""


if __name__ == "__main__":
    transaction_coordinator.until_safe = _at_once  # type: ignore[attr-defined]
    transaction_coordinator._ANSWER_AFTER_S = 0.0  # type: ignore[misc]
    main()
