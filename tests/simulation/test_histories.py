"""A few hundred short histories with every run of the tests; `make simulate` runs more and longer ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .mutants import MUTANTS

_ROOT = Path(__file__).parents[2]


def simulate(*options: str) -> subprocess.CompletedProcess[str]:
    """Run in a separate process, with its own time, randomness and files."""
    command = [sys.executable, "-m", "tests.simulation", *options]
    return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False, env={**os.environ})  # noqa: S603


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", [0, 10_000])
def test_no_short_history_has_a_violation(first: int) -> None:
    ended = simulate("--first", str(first), "--histories", "100", "--events", "15")

    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.timeout(300)
def test_no_long_history_has_a_violation() -> None:
    ended = simulate("--first", "20000", "--histories", "8", "--events", "120")

    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", list(MUTANTS))
def test_a_planted_bug_is_found_within_forty_seeds(mutant: str) -> None:
    ended = simulate("--mutant", mutant, "--histories", "40", "--events", "80")

    assert "is found by seed" in ended.stdout, ended.stdout + ended.stderr


@pytest.mark.timeout(300)
def test_histories_that_once_failed_pass() -> None:
    """What each of them found is in docs/simulation.md."""
    plans = sorted(str(path) for path in Path(__file__).with_name("once").glob("*.json"))
    ended = simulate("--plan", *plans)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{len(plans)} histories" in ended.stdout


@pytest.mark.timeout(300)
def test_a_seed_is_the_same_history_in_two_processes_whose_hashes_differ() -> None:
    ended = simulate("--first", "1000", "--histories", "7", "--events", "40", "--twice")

    assert "7 of 7 histories are the same" in ended.stdout, ended.stdout + ended.stderr
