"""Forked processes that are killed with SIGKILL, by the test or by their own code."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

Moment = Literal["before", "torn"]

KILLED = -signal.SIGKILL
_CHANGING_CALLS = ("pwrite", "rename", "replace", "ftruncate", "truncate", "fsync", "unlink", "mkdir", "rmdir")


def fork(work: Callable[[], None]) -> int:
    """Run `work` in a forked process; returns its pid."""
    with warnings.catch_warnings():
        # Libraries that other tests have loaded may run threads; the child does not need them.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - it must not get into the test that was forked
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def wait(pid: int) -> int:
    """Exit code of a process, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def run(work: Callable[[], None]) -> int:
    return wait(fork(work))


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_at(number: int, moment: Moment, note: Callable[[str], object] = lambda _: None) -> None:
    """Kill this process at its n-th system call that modifies the disk, counted from 1.

    A write is "torn" if half of its bytes are written. `note` gets the name of each such call.
    """
    count = 0

    def wrap(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **options: Any) -> Any:
            nonlocal count
            if name == "open" and not args[1] & os.O_CREAT:
                return call(*args, **options)
            note(name)
            count += 1
            if count == number:
                if moment == "torn" and name == "pwrite":
                    fd, data, position = args
                    call(fd, memoryview(data)[: len(data) // 2], position)
                die()
            return call(*args, **options)

        return wrapped

    for name in (*_CHANGING_CALLS, "open"):
        setattr(os, name, wrap(name, getattr(os, name)))
