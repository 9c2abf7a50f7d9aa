"""500 tests, each with a separate broker, topic and group, in random order: sequentially and in parallel."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import ottla
from bench.report import Row

_COUNT = 500
_GOAL_S = 30
_TEST = f"""
import ottla as package
import pytest


@pytest.mark.parametrize("number", range({_COUNT}))
def test_nothing_is_left_of_others(ottla, number):
    assert ottla.topics() == []
    assert not list(ottla.broker.groups.rules.table)
    assert len(ottla.requests) == 0
    with package.Producer(ottla.bootstrap_servers) as producer:
        producer.send("orders", b"%d" % number)
    options = {{"group": "readers", "auto_offset_reset": "earliest"}}
    with package.Consumer(ottla.bootstrap_servers, "orders", **options) as consumer:
        [record] = consumer.poll(timeout_ms=10_000)
        assert record.value == b"%d" % number
        consumer.commit()
    assert ottla.lag("readers").popitem()[1] == 0
"""
_IN_RANDOM_ORDER = """
import random


def pytest_collection_modifyitems(items):
    # The same in every process of a run, as pytest-xdist wants it.
    random.Random({seed}).shuffle(items)
"""


def rows() -> list[Row]:
    return [
        _row("500 tests in one process, in random order", _seconds(1), _GOAL_S),
        _row("the same in two processes (pytest-xdist)", _seconds(2, "-n", "2")),
    ]


def _seconds(seed: int, *options: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_app.py").write_text(_TEST)
        (Path(folder) / "conftest.py").write_text(_IN_RANDOM_ORDER.format(seed=seed))
        plugin = ["-p", "ottla.testing.plugin", "-p", "no:ottla", "-p", "no:cacheprovider"]
        began = perf_counter()
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *plugin, *options, folder],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(Path(ottla.__file__).parents[1])},
            capture_output=True,
            text=True,
            check=False,
        )
        took = perf_counter() - began
    assert f"{_COUNT} passed" in ended.stdout, ended.stdout + ended.stderr
    return took


def _row(what: str, took_s: float, goal_s: float | None = None) -> Row:
    return Row(
        what=what,
        ours=f"{took_s:.1f} s",
        goal="" if goal_s is None else f"<= {goal_s} s",
        is_reached=None if goal_s is None else took_s <= goal_s,
    )
