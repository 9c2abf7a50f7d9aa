"""A disk that fails to sync: the change is refused, the next is made, and nothing acknowledged is lost."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ottla.storage.catalog.sqlite import SqliteCatalog

if TYPE_CHECKING:
    from pathlib import Path

CHANGE_AND_DIE = """
import os, sys
from pathlib import Path
from ottla.core.errors import StorageError
from ottla.storage.catalog.sqlite import SqliteCatalog
catalog = SqliteCatalog.open(Path(sys.argv[1]))
for number in range(20):
    try:
        print(catalog.create_topic(f"topic-{number}", 1, {"a": "1"}).name, "created", flush=True)
    except StorageError:
        assert f"topic-{number}" not in catalog.view.topics
        print(f"topic-{number}", "refused", flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("every", [2, 3])
def test_a_failed_sync_refuses_that_change_alone(tmp_path: Path, every: int) -> None:
    SqliteCatalog.open(tmp_path).close()

    said = run_with_failing_syncs(tmp_path, every)

    created = {name for name, outcome in said if outcome == "created"}
    refused = {name for name, outcome in said if outcome == "refused"}
    assert len(created) + len(refused) == 20
    assert len(refused) >= 6
    with closing(SqliteCatalog.open(tmp_path)) as catalog:
        held = set(catalog.view.topics)
    # Only the last one's fate was open when the process died: a later change settles that of an earlier one.
    assert created <= held <= created | {said[-1][0]}


def run_with_failing_syncs(folder: Path, every: int) -> list[tuple[str, str]]:
    if shutil.which("strace") is None:
        pytest.skip("making fdatasync fail needs strace")
    fault = f"inject=fdatasync:error=EIO:when=1+{every}"
    strace = ["strace", "-f", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", fault]
    command = [*strace, sys.executable, "-c", CHANGE_AND_DIE, str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if "ptrace" in run.stderr:
        pytest.skip(f"making fdatasync fail needs ptrace: {run.stderr.strip()}")
    said = [line.split() for line in run.stdout.splitlines()]
    return [(name, outcome) for name, outcome in said]
