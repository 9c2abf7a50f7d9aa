"""Kill the writer at every step of its commits, with compaction and expiry by others in between."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .conftest import Lake

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
CRASHING = Path(__file__).with_name("crashing.py")
MOST_STEPS = 200
STRIDE = 1 if os.environ.get("LAKE_KILLS") else 5
"""Steps between two kills: each step in `make pipeline-test`, some in `make test`."""


@pytest.fixture
def run_and_kill(lake: Lake) -> Iterator[Callable[[int], int]]:
    command = [sys.executable, str(CRASHING), lake.servers, lake.topic, str(lake.settings.folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as program:
        assert program.stdin is not None
        assert program.stdout is not None

        def at_step(step: int) -> int:
            print(step, file=program.stdin)
            return int(program.stdout.readline())  # type: ignore[union-attr]

        yield at_step
        program.stdin.close()


def compact_as_another_program(lake: Lake) -> None:
    """The same rows in one file, and all other snapshots expired."""
    if not lake.catalog.table_exists(lake.table_name) or not (rows := lake.table.scan().to_arrow()).num_rows:
        return
    lake.table.overwrite(rows)
    table = lake.table
    current = table.current_snapshot().snapshot_id
    old = [each.snapshot_id for each in table.metadata.snapshots if each.snapshot_id != current]
    table.maintenance.expire_snapshots().by_ids(old).commit()


def test_kills_neither_lose_nor_duplicate_records(lake: Lake, run_and_kill: Callable[[int], int]) -> None:
    written, code, kills = 0, -1, 0
    for step in range(1, MOST_STEPS, STRIDE):
        lake.numbers(range(written, written + 5))
        lake.produce(b"bad %d" % written)
        written += 5
        code = run_and_kill(step)
        if kills % 4 == 3:
            compact_as_another_program(lake)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        kills += 1
    assert code == 0
    assert kills >= 4
    assert lake.ids() == list(range(written))
    assert [each["value"] for each in lake.dead_letters()] == [b"bad %d" % each for each in range(0, written, 5)]
