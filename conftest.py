"""Distribution and timeouts of test runs, here and in `interop`."""

import faulthandler
import os
from collections.abc import Generator, Iterator
from pathlib import PurePath

import pytest
from xdist.scheduler import LoadScopeScheduling

# One Spark or one browser for all the files in these.
_KEPT_TOGETHER = ("tests/spark", "tests/spark/archive", "tests/spark/pipelines", "interop/console")
_CLEAN_UP_S = 90.0
_EXIT_S = 60.0

_stderr = pytest.StashKey[int]()


class ByFile(LoadScopeScheduling):
    """When several processes share the tests, a file stays in one of them, and so do some folders."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, _ = nodeid.partition("::")
        folder = str(PurePath(file).parent)
        return folder if folder in _KEPT_TOGETHER else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    return ByFile(config, log)


# No run hangs forever: a stuck test prints its stacks and ends. pytest-timeout interrupts the main thread once. That
# does
# not reach what waits in C or in uvloop, nor what is stuck again while a test is cleaned up, nor a thread that outlives
# the session.


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_stderr] = os.dup(2)  # output is captured while a test runs


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    marker, config = item.get_closest_marker("timeout"), item.config
    limit_s = float(marker.args[0] if marker else config.getoption("timeout") or config.getini("timeout"))
    if limit_s and not config.getoption("usepdb"):
        faulthandler.dump_traceback_later(limit_s + _CLEAN_UP_S, exit=True, file=config.stash[_stderr])
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput"):
        return  # it waits for the others, and is then ended by the process that shares the tests out
    faulthandler.dump_traceback_later(_EXIT_S, exit=True, file=session.config.stash[_stderr])
