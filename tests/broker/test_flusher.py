from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ottla.broker.upkeep import flusher
from ottla.broker.upkeep.flusher import Flusher
from ottla.core.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


class Refusing:
    """A partition whose log fails to flush, with a different reason each time."""

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


def test_a_failing_flush_is_logged_once_per_reason(
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
    """A partition whose flush runs until the test ends it."""

    def __init__(self) -> None:
        self.log: Any = self
        self.is_begun = False

    def is_flush_due(self, *_: float) -> bool:
        return not self.is_begun


def test_the_number_of_concurrent_flushes_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
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


class Counting:
    """A partition whose flush syncs only the records appended before it started."""

    at = "t-0"
    term = None

    def __init__(self) -> None:
        self.log: Any = self
        self.next_offset = 1
        self._recovery_point = 0
        self.looked_at = 0
        self.when_synced: Callable[[], object] = lambda: None

    @property
    def recovery_point(self) -> int:
        self.looked_at += 1
        assert self.looked_at < 1000, "it spins"
        return self._recovery_point

    async def flush(self) -> None:
        until_offset = self.next_offset
        await asyncio.sleep(0)
        self._recovery_point = until_offset
        when_synced, self.when_synced = self.when_synced, lambda: None
        when_synced()


def test_an_append_right_after_a_flush_gets_another_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    """The append comes before the waiters have noticed the end of the flush."""
    partition: Any = Counting()
    later: list[asyncio.Task[None]] = []

    async def scenario() -> None:
        running = Flusher(list)
        monkeypatch.setattr(running, "flush", lambda partition: partition.flush())

        def append() -> None:
            partition.next_offset = 2
            later.append(asyncio.create_task(running.durable(partition, 1)))

        partition.when_synced = append
        await running.durable(partition, 0)
        await later[0]

    asyncio.run(asyncio.wait_for(scenario(), 10))
    assert partition.recovery_point == 2
