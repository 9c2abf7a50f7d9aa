"""Subprocesses of tests that may hang."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PROGRAM_TIMEOUT_S = 90


@contextmanager
def ended(process: subprocess.Popen[Any], timeout_s: float = PROGRAM_TIMEOUT_S) -> Iterator[None]:
    """It is killed when the block ends, and on timeout: the reader of its output continues then."""
    timer = threading.Timer(timeout_s, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        process.kill()
        process.wait()
