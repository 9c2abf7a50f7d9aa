"""The raw disk, as a baseline."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from bench.rounds import CASE_S

if TYPE_CHECKING:
    from pathlib import Path

_PIECE = bytes(1 << 20)


def written_mb_per_second(folder: Path) -> float:
    """Sequential writes of 1 MiB, and the sync at their end."""
    file = folder / "disk"
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        start = time.perf_counter()
        written = 0
        while time.perf_counter() < start + CASE_S:
            written += os.write(descriptor, _PIECE)
        os.fdatasync(descriptor)
        return written / 1e6 / (time.perf_counter() - start)
    finally:
        os.close(descriptor)
        file.unlink()
