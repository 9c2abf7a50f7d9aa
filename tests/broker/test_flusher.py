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


class Slow:
    """A partition whose flush begins, and goes on until it is told to end."""

    def __init__(self) -> None:
        self.log: Any = self
        self.is_begun = False

    def is_flush_due(self, *_: float) -> bool:
        return not self.is_begun


def test_only_so_many_logs_are_flushed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    partitions: list[Any] = [Slow() for _ in range(100)]
    under_way: list[asyncio.Event] = []
    most = 0

    async def flush(_: Flusher, partition: Slow) -> None:
        nonlocal most
        partition.is_begun = True
        under_way.append(asyncio.Event())
        most = max(most, len(under_way))
        await under_way[-1].wait()

    monkeypatch.setattr(flusher, "_TICK_S", 0)
    monkeypatch.setattr(Flusher, "flush", flush)

    async def scenario() -> None:
        running = Flusher(lambda: partitions)
        running.start()
        while not all(partition.is_begun for partition in partitions):
            await asyncio.sleep(0)
            if len(under_way) == flusher._AT_ONCE:
                under_way.pop(0).set()
        for event in under_way:
            event.set()
        await running.stop()

    asyncio.run(asyncio.wait_for(scenario(), 10))
    assert most == flusher._AT_ONCE
