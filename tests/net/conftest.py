"""Runs each test on both event loops, and fails if the loop reported an error."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import pytest
import uvloop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

PATIENCE_S = 30
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session")
def _few_objects() -> Iterator[None]:
    """Freeze existing objects, so that the garbage collection after each test skips them."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest, _few_objects: None) -> Callable[[Coroutine[Any, Any, None]], None]:
    """Runs a scenario to completion."""

    def run_scenario(scenario: Coroutine[Any, Any, None]) -> None:
        complaints: list[str] = []

        async def watched() -> None:
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _loop, context: complaints.append(str(context)))
            await asyncio.wait_for(scenario, PATIENCE_S)

        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            runner.run(watched())
        # An unretrieved exception is reported when its task is collected.
        gc.collect()
        assert complaints == []

    return run_scenario
