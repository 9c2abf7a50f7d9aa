from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from ottla.storage.catalog.sqlite import SqliteCatalog

from .contract import catalog  # noqa: F401

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .contract import Reopen


@pytest.fixture
def reopen(tmp_path: Path) -> Iterator[Reopen]:
    opened: list[SqliteCatalog] = []

    def reopen() -> SqliteCatalog:
        while opened:
            opened.pop().close()
        opened.append(SqliteCatalog.open(tmp_path))
        return opened[0]

    yield reopen
    while opened:
        opened.pop().close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A separate file system with room for little."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "ottla-test", str(disk)]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"mounting a small tmpfs is not allowed here: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)
