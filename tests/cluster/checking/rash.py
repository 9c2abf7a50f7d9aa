"""`ottla` with a planted bug: a commit is answered before any other node has it. The checker must catch it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker import transaction_coordinator
from ottla.cli.main import main

if TYPE_CHECKING:
    from ottla.broker.partition import Partition
    from ottla.broker.transaction_coordinator import TransactionCoordinator


async def _at_once(_coordinator: TransactionCoordinator, _partition: Partition, _offset: int) -> None:
    """Nothing is waited for."""


if __name__ == "__main__":
    transaction_coordinator.TransactionCoordinator._safe = _at_once  # type: ignore[method-assign]
    transaction_coordinator._ANSWER_AFTER_S = 0.0  # type: ignore[misc]
    main()
