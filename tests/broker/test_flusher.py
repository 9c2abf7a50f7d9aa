from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ottla.broker import flusher
from ottla.broker.flusher import Flusher
from ottla.core.errors import StorageError

if TYPE_CHECKING:
    import pytest


class Refusing:
    """A partition whose log can never be flushed, for one reason after another."""

    at = "t-0"

    def __init__(self, reasons: list[str | None]) -> None:
        self._reasons = reasons
        self.log: Any = self

    def is_flush_due(self, *_: float) -> bool:
        return bool(self._reasons)

    def begin_flush(self) -> None:
        reason = self._reasons.pop(0)
        if reason is not None:
            raise StorageError(reason)


def test_a_log_that_cannot_be_flushed_is_complained_of_once_for_each_reason(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reasons: list[str | None] = [*["full"] * 20, "failing", "failing", None, "failing"]
    partition: Any = Refusing(reasons)
    monkeypatch.setattr(flusher, "_TICK_S", 0)

    async def scenario() -> None:
        running = Flusher(lambda: [partition])
        running.start()
        while reasons:  # noqa: ASYNC110 - it is the flusher that is to run
            await asyncio.sleep(0)
        await running.stop()

    asyncio.run(asyncio.wait_for(scenario(), 10))
    said = [record.getMessage().rpartition(" ")[2] for record in caplog.records]
    assert said == ["full", "failing", "failing"]
