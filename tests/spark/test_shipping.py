"""The package shipped to workers has everything that a task imports."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'ottla[arrow]'")

from ottla.spark.environment.shipping import archives


def test_the_shipped_package_can_be_imported(tmp_path: Path) -> None:
    for archive in archives():
        path, _, name = archive.partition("#")
        with zipfile.ZipFile(path) as packed:
            packed.extractall(tmp_path / name)
    names = "ottla.client.client, ottla.records.arrow, ottla.spark.archive.tables, cramjam, fastcrc, msgspec"
    program = f"import {names}; print(ottla.records.arrow.__file__, cramjam.__file__, msgspec.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(tmp_path)}, cwd=tmp_path, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert all(Path(each).is_relative_to(tmp_path) for each in found.stdout.split())


def test_it_is_packed_once() -> None:
    assert archives() is archives()
    assert all(Path(each.partition("#")[0]).is_file() for each in archives())
