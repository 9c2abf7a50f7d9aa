"""Asking again what could not be answered yet: with growing pauses, and not beyond a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.client.router import Router


class Patience:
    """One question's: it begins when this is made, and ends with the request timeout."""

    def __init__(self, router: Router) -> None:
        self._backoff = router.backoff
        self._deadline = asyncio.get_running_loop().time() + router.config.request_timeout_ms / 1000
        self._attempts = 0

    async def is_over(self) -> bool:
        """Whether to give up; if not, the time to wait before the next attempt has passed."""
        self._attempts += 1
        pause_s = self._backoff.delay_s(self._attempts)
        if asyncio.get_running_loop().time() + pause_s > self._deadline:
            return True
        await asyncio.sleep(pause_s)
        return False
