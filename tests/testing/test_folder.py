"""Temporary folders of brokers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ottla.testing.folder import ephemeral_folder

_KEEP = """
import sys
from ottla.testing.folder import ephemeral_folder

with ephemeral_folder() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_the_folder_of_a_killed_process_is_removed_by_the_next_one() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _KEEP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        abandoned = Path(process.stdout.readline().strip())
        with ephemeral_folder() as mine:
            assert abandoned.exists(), "its process runs"
            process.kill()
            process.wait()
            with ephemeral_folder():
                assert not abandoned.exists()
            assert mine.exists()
