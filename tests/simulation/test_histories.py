"""A few short histories with every run of the tests; `make simulate` runs more and longer ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]


def simulate(*options: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: its time, its chance and its files are not the tests'."""
    command = [sys.executable, "-m", "tests.simulation", *options]
    return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False, env={**os.environ})  # noqa: S603


@pytest.mark.timeout(600)
def test_no_history_of_faults_breaks_a_promise() -> None:
    ended = simulate("--histories", "40", "--events", "40")

    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("profile", "seed"),
    [("moves", 2013), ("disks", 3001), ("disks", 3003), ("topics", 2002), ("topics", 2008), ("topics", 13)],
)
def test_a_history_that_broke_a_promise_once_does_not_any_more(profile: str, seed: int) -> None:
    """What each of them found is in docs/simulation.md."""
    ended = simulate("--profile", profile, "--first", str(seed), "--histories", "1", "--events", "120")

    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", ["hasty", "lax", "repeating", "forgetful", "rash"])
def test_a_planted_bug_is_found_within_ten_seeds(mutant: str) -> None:
    ended = simulate("--mutant", mutant, "--histories", "10", "--events", "80")

    assert "is found by seed" in ended.stdout, ended.stdout + ended.stderr


@pytest.mark.timeout(300)
def test_a_seed_is_the_same_history_twice() -> None:
    ended = simulate("--first", "1000", "--histories", "3", "--events", "40", "--twice")

    assert ended.returncode == 0, ended.stdout + ended.stderr
