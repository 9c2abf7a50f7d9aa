"""Whether a seed is one history: the same in two processes whose hashes and addresses differ."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

TRACE: Final = "trace"
"""The first word of a line that tells the checksum of a history, after its seed."""


def run_twice(options: list[str]) -> int:
    """The exit code: 0 if all histories are the same, and nothing else is wrong with them."""
    command = [sys.executable, "-m", "tests.simulation", *options, "--traces"]
    runs = [
        subprocess.Popen(  # noqa: S603
            command, env={**os.environ, "PYTHONHASHSEED": hash_seed}, stdout=subprocess.PIPE, text=True
        )
        for hash_seed in ("1", "2")
    ]
    told = [run.communicate()[0] for run in runs]
    one, other = (_traces(each) for each in told)
    both = sorted(one.keys() & other.keys())
    differing = [seed for seed in both if one[seed] != other[seed]]
    for line in told[0].splitlines():
        if not line.startswith(TRACE):
            _say(line)
    for seed in differing:
        _say(f"seed {seed}: not the same history twice: {one[seed]} and {other[seed]}")
    _say(f"{len(both) - len(differing)} of {len(both)} histories are the same in two processes")
    return 0 if both and not differing and not any(run.returncode for run in runs) else 1


def _traces(told: str) -> dict[int, str]:
    lines = (line.split() for line in told.splitlines() if line.startswith(TRACE))
    return {int(seed): trace for _, seed, trace in lines}


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201
