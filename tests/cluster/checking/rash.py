"""`ottla` with a planted bug: a commit is acknowledged before it is replicated. The checker must catch it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.coordinators import transactions as transaction_coordinator
from ottla.cli.main import main

if TYPE_CHECKING:
    from ottla.broker.coordinators.transactions import TransactionCoordinator


async def _at_once(_coordinator: TransactionCoordinator, _transactional_id: str) -> None:
    """Return without waiting."""


if __name__ == "__main__":
    transaction_coordinator.TransactionCoordinator._until_safe = _at_once  # type: ignore[method-assign]
    transaction_coordinator._ANSWER_AFTER_S = 0.0  # type: ignore[misc]
    main()
