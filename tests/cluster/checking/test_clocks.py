"""The shifted clock: only the time of day jumps."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from .clocks import NoCompiler, ShiftedClock

if TYPE_CHECKING:
    from pathlib import Path


def test_the_time_of_day_jumps_and_monotonic_clocks_do_not(tmp_path: Path) -> None:
    try:
        clock = ShiftedClock(tmp_path, 1)
    except NoCompiler as missing:
        pytest.skip(str(missing))
    clock.jump(-3600)
    told = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time(), time.monotonic())"],
        env={**os.environ, **clock.environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()

    assert -3610 < float(told[0]) - time.time() < -3590
    assert 0 <= time.monotonic() - float(told[1]) < 10
