"""The event loop of brokers and clients: uvloop's, or asyncio's if uvloop is not installed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

Result = TypeVar("Result")


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end, or until interrupted."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)
