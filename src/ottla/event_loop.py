"""The event loop that brokers and clients run in: uvloop's, or asyncio's own where that is not installed."""

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
