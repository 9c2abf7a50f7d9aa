"""Retries with backoff and a deadline."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.client.router import Router


class RetryBudget:
    """For one request: starts when created, and ends with the request timeout."""

    def __init__(self, router: Router) -> None:
        self._backoff = router.backoff
        self._deadline = asyncio.get_running_loop().time() + router.config.request_timeout_ms / 1000
        self._attempts = 0

    async def is_over(self) -> bool:
        """Whether to give up; if not, the backoff delay has passed."""
        self._attempts += 1
        pause_s = self._backoff.delay_s(self._attempts)
        if asyncio.get_running_loop().time() + pause_s > self._deadline:
            return True
        await asyncio.sleep(pause_s)
        return False
