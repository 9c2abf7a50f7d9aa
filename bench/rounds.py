"""Measuring several sides in alternating rounds, so that a noisy minute hits all of them."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

IS_SHORT = bool(os.environ.get("BENCH_SHORT"))
"""To see that everything works; the figures mean nothing."""
CASES = tuple(filter(None, os.environ.get("BENCH_CASES", "").split(",")))
"""Only these cases are measured, in full; none stands for all."""
ROUNDS = 1 if IS_SHORT else 5
CASE_S = 1.0 if IS_SHORT else 5.0
"""How long one case of one round lasts at least."""
_WARM_UP_S = 1 if IS_SHORT else 90

One = TypeVar("One")
Measured = TypeVar("Measured")

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of all rounds, between their lowest and highest value."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))

    def __str__(self) -> str:
        digits = 0 if self.median >= 100 else 2
        return f"{self.median:,.{digits}f} ({self.low:,.{digits}f} to {self.high:,.{digits}f})"


@dataclass(frozen=True, slots=True)
class Rate:
    """Operations per second, the CPU time that each took the broker, and its memory afterwards."""

    per_second: float
    cpu_us: float
    resident_mib: float


def in_turns(sides: Sequence[One], measure: Callable[[One], Measured], rounds: int = ROUNDS) -> list[list[Measured]]:
    """The measurements of each side. Every other round begins with the last side."""
    measured: list[list[Measured]] = [[] for _ in sides]
    for number in range(rounds):
        order = list(enumerate(sides))
        for index, side in order if number % 2 == 0 else reversed(order):
            measured[index].append(measure(side))
    return measured


def ratio_of_rounds(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    return Spread.of([one / (other or math.inf) for one, other in zip(ours, theirs, strict=True)])


def cpu_s(pid: int) -> float:
    """User and system time of a process, with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def resident_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def rate(pid: int, work: Callable[[float], int], seconds: float = CASE_S) -> Rate:
    """Let `work` run until a deadline; it returns the number of operations it completed."""
    cpu, start = cpu_s(pid), time.perf_counter()
    count = work(start + seconds)
    took = time.perf_counter() - start
    return Rate(count / took, (cpu_s(pid) - cpu) * 1e6 / max(count, 1), resident_mib(pid))


def warm_up(
    measure: Callable[[float], float], *, step_s: float = 2.0, within: float = 0.05, at_most_s: float = _WARM_UP_S
) -> int:
    """Repeat a measurement until its last three values differ by less than `within`; returns the number of steps."""
    values: list[float] = []
    deadline = time.perf_counter() + at_most_s
    while time.perf_counter() < deadline:
        values.append(measure(step_s))
        last = values[-3:]
        if len(values) >= 5 and max(last) - min(last) <= within * max(last):
            break
    return len(values)
