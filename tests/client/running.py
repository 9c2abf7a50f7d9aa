"""Runs a scenario in a separate event loop, which must have no tasks left."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import uvloop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


def run(scenario: Coroutine[Any, Any, T], loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop) -> T:
    """Its result; fails if a task is left behind, or if an exception was not retrieved."""
    unseen: list[dict[str, Any]] = []

    async def watched() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unseen.append(context))
        result = await scenario
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert left == [], "tasks were left behind"
        return result

    with asyncio.Runner(loop_factory=loop) as runner:
        result = runner.run(watched())
    assert unseen == [], unseen
    return result
