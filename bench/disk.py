"""The raw disk, as a baseline."""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING

from bench.rounds import CASE_S

if TYPE_CHECKING:
    from pathlib import Path

_PIECE = bytes(1 << 20)


def check_space(folder: Path, needed_gb: float) -> None:
    """Raises if a benchmark would fill the disk: a broker then refuses records until the client gives up."""
    free_gb = shutil.disk_usage(folder).free / 1e9
    if free_gb < needed_gb:
        raise RuntimeError(f"{folder} has {free_gb:.1f} GB free; this benchmark needs {needed_gb:.0f} GB")


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
