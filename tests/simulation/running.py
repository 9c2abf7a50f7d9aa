"""Histories in separate processes: forked from one that has imported everything, and gone afterwards."""

from __future__ import annotations

import gc
import logging
import os
import pickle
import select
import shutil
import signal
import tempfile
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .loop import NeverEnds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from .history import Outcome
    from .plans import Plan

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a file system in memory, where there is one
_MOST_CPU_S: Final = 60
"""What takes longer never ends."""


def run_history(plan: Plan, *, shows_log: bool = False, dump: Path | None = None, is_traced: bool = True) -> Outcome:
    """Run in this process, which cannot be used afterwards. Without a trace, its checksum is 0."""
    from . import disk
    from .history import HistoryRun

    # What is thrown away is not looked at: memory goes with the process, and what is left of dead nodes must not act.
    gc.disable()
    shown = logging.StreamHandler() if shows_log else logging.NullHandler()
    logging.basicConfig(level=logging.INFO if shows_log else logging.CRITICAL, handlers=[shown])
    root = Path(tempfile.mkdtemp(prefix="ottla-simulation-", dir=_MEMORY if _MEMORY.is_dir() else None))
    try:
        disk.install(root)
        history = HistoryRun(plan, root)
        history.loop.is_traced = is_traced
        if dump is not None:
            history.loop.dump = dump.open("w", buffering=1)
        shown.setFormatter(_Formatter(history.loop))
        signal.signal(signal.SIGVTALRM, _interrupt)
        signal.setitimer(signal.ITIMER_VIRTUAL, _MOST_CPU_S)
        return history.run()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _interrupt(_signal: int, frame: FrameType | None) -> None:
    raise NeverEnds("".join(traceback.format_stack(frame, limit=4)))


class _Formatter(logging.Formatter):
    def __init__(self, loop: Any) -> None:
        super().__init__("%(levelname)s %(name)s %(message)s")
        self._loop = loop

    def format(self, record: logging.LogRecord) -> str:
        from .parties import current_party

        return f"{self._loop.now_s - 1000:9.4f} {current_party()} {super().format(record)}"


class Child:
    """A fork that runs one history, and reports the result through a pipe."""

    def __init__(self, plan: Plan, dump: Path | None = None, *, is_traced: bool = True) -> None:
        self.plan = plan
        self.pipe, writer = os.pipe()
        self._parts: list[bytes] = []
        self._id = os.fork()
        if self._id == 0:
            try:
                _tell(plan, dump, writer, is_traced=is_traced)
            finally:
                os._exit(0)
        os.close(writer)

    def read(self) -> bool:
        """Whether that was all."""
        data = os.read(self.pipe, 1 << 20)
        self._parts.append(data)
        return not data

    def outcome(self) -> Outcome | str:
        os.close(self.pipe)
        _, status = os.waitpid(self._id, 0)
        data = b"".join(self._parts)
        return pickle.loads(data) if data else f"ended with status {status}, and said nothing"  # noqa: S301

    def kill(self) -> None:
        os.kill(self._id, signal.SIGKILL)


def _tell(plan: Plan, dump: Path | None, writer: int, *, is_traced: bool) -> None:
    outcome: Outcome | str
    try:
        outcome = run_history(plan, dump=dump, is_traced=is_traced)
    except BaseException:  # noqa: BLE001 - told to the parent
        outcome = traceback.format_exc()
    with os.fdopen(writer, "wb") as pipe:
        pickle.dump(outcome, pipe)


def in_a_fork(plan: Plan, dump: Path | None = None) -> Outcome | str:
    child = Child(plan, dump)
    while not child.read():
        pass
    return child.outcome()


def run_all(plans: Iterator[Plan], jobs: int, *, is_traced: bool) -> Iterator[tuple[Plan, Outcome | str]]:
    """This many at a time, in the order in which they end."""
    children: dict[int, Child] = {}
    try:
        while True:
            while len(children) < jobs and (plan := next(plans, None)) is not None:
                child = Child(plan, is_traced=is_traced)
                children[child.pipe] = child
            if not children:
                return
            ready, _, _ = select.select(list(children), [], [])
            for pipe in ready:
                if children[pipe].read():
                    ended = children.pop(pipe)
                    yield ended.plan, ended.outcome()
    finally:
        for child in children.values():
            child.kill()
