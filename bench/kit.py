"""The testing kit against other brokers for tests: how long a test waits for its broker, and for its first record."""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median

from interop.foreign_clients import go_program

from bench import kit_sides
from bench.kit_sides import first_in_group_ms, first_record_ms, kit, start_ms
from bench.report import Row

_COLD_RUNS = {"kit": 7, "mock_cluster": 7, "kfake": 7, "kafka": 2}
_WARM_RUNS = 7
_STARTS = 200
_COLD_GOAL_MS = 150
_WARM_GOAL_MS = 10
_OTHERS = {"mock_cluster": "mock cluster", "kfake": "kfake", "kafka": "Apache Kafka"}


def rows() -> list[Row]:
    # Both are fetched and built before anything is measured.
    kit_sides.start_ms(kit_sides.kfake)
    own_ms = _kfake_in_its_own_binary_ms()
    return [
        *_cold("cold: until the broker is there", "start_ms"),
        *_cold("cold: until a record was acknowledged and consumed", "first_record_ms", _COLD_GOAL_MS),
        _row(
            "the same, kfake with franz-go in one binary",
            _cold_ms("kit", "first_record_ms"),
            "kfake",
            own_ms,
        ),
        *_cold("cold: the same in a group", "first_in_group_ms", _COLD_GOAL_MS),
        *_warm(),
    ]


def _cold(what: str, measure: str, goal_ms: float | None = None) -> list[Row]:
    ours_ms = _cold_ms("kit", measure)
    others = {name: _cold_ms(side, measure) for side, name in _OTHERS.items()}
    return [_row(what, ours_ms, name, theirs_ms, goal_ms) for name, theirs_ms in others.items()]


def _cold_ms(side: str, measure: str) -> float:
    """In new processes, which find compiled bytecode as they do with a package that is installed."""
    command = [sys.executable, "-c", f"from bench import kit_sides; print(kit_sides.{measure}(kit_sides.{side}))"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    runs = [
        float(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)
        for _ in range(_COLD_RUNS[side] + 1)
    ]
    return median(runs[1:])


def _kfake_in_its_own_binary_ms() -> float:
    command = [str(go_program("kfake")), "first-record"]
    return median(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(7))


def _warm() -> list[Row]:
    starts_ms = median(start_ms(kit) for _ in range(_STARTS))
    record_ms = median(first_record_ms(kit) for _ in range(_WARM_RUNS))
    group_ms = median(first_in_group_ms(kit) for _ in range(_WARM_RUNS))
    mock = kit_sides.mock_cluster
    return [
        _row("warm: until the broker is there", starts_ms, *_theirs(start_ms), _WARM_GOAL_MS),
        _row("warm: until a record was acknowledged and consumed", record_ms, *_theirs(first_record_ms)),
        _row("warm: the same in a group", group_ms, "mock cluster", median(first_in_group_ms(mock) for _ in range(3))),
    ]


def _theirs(measure: object) -> tuple[str, float]:
    assert callable(measure)
    return "mock cluster", median(measure(kit_sides.mock_cluster) for _ in range(_WARM_RUNS))


def _row(what: str, ours_ms: float, name: str, theirs_ms: float, goal_ms: float | None = None) -> Row:
    return Row(
        what=what,
        ours=f"{ours_ms:.1f} ms",
        theirs=f"{name}: {theirs_ms:.1f} ms",
        ratio=ours_ms / theirs_ms,
        goal="" if goal_ms is None else f"<= {goal_ms} ms",
        is_reached=None if goal_ms is None else ours_ms <= goal_ms,
    )
