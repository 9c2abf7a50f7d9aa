"""Ottla installs and works where there is no C compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "src")

PROGRAM = """
import sys
sys.modules["cython"] = None  # as where nobody installed it
from ottla.records import payload
from ottla.records.encode import BatchBuilder
from ottla.records.reader import RecordReader
builder = BatchBuilder(4)
builder.append(5, b"key", b"value", [("name", None)])
[record] = RecordReader(builder.build())
print(payload.IS_COMPILED, record, record.headers, payload.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built by pip, as at `pip install`, with a C compiler that fails."""
    folder = tmp_path_factory.mktemp("source")
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__"))
        else:
            shutil.copy(source, folder / part)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", folder / "out", folder]
    subprocess.run(command, check=True, env=os.environ | {"CC": "/bin/false", "LDSHARED": "/bin/false"})
    [built] = (folder / "out").glob("*.whl")
    return built


@pytest.mark.timeout(300)
def test_it_is_built_without_the_compiled_modules(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    assert "ottla/records/payload.py" in names
    assert not [name for name in names if name.endswith((".so", ".pyd", ".c"))]


@pytest.mark.timeout(300)
def test_it_warns_once_and_works(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)

    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )

    assert ran.stdout.startswith("False Record(offset=0, key=b'key', value=b'value') (('name', None),)")
    assert str(tmp_path) in ran.stdout
    assert ran.stderr.count("UncompiledWarning") == 1
    assert "install a C compiler and reinstall ottla" in ran.stderr


@pytest.mark.timeout(300)
def test_the_web_console_is_in_it(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    console = {path.relative_to(source).as_posix() for path in (source / "ottla/http/console").rglob("*.*")}

    assert len(console) > 50
    assert console <= names
