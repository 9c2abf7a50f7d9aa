"""No run of the tests hangs for ever: who is stuck shows where, and ends.

pytest-timeout interrupts the main thread once. That does not reach a client that waits in C, nor what is stuck again
while the test is cleaned up, nor a thread that outlives the session.
"""

import faulthandler
import os
from collections.abc import Generator, Iterator

import pytest

_CLEAN_UP_S = 90.0
_EXIT_S = 60.0

_stderr = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_stderr] = os.dup(2)  # output is captured while a test runs


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    marker = item.get_closest_marker("timeout")
    limit_s = float(marker.args[0] if marker else item.config.getini("timeout"))
    faulthandler.dump_traceback_later(limit_s + _CLEAN_UP_S, exit=True, file=item.config.stash[_stderr])
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    faulthandler.dump_traceback_later(_EXIT_S, exit=True, file=session.config.stash[_stderr])
