"""A home for Spark from which its Python processes import the pyspark that is installed, with its compiled files.

Spark puts the archive `python/lib/pyspark.zip` of its home before everything else on the path of these processes. It
contains only sources, and each new process compiles them again: half a second of work for each kind of process,
and for each streaming query.
"""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PARTS: Final = ("bin", "conf", "jars", "sbin")
_PYTHON: Final = "PYSPARK_PYTHON"
_HOME: Final = "SPARK_HOME"
_changing_environment: Final = threading.Lock()
"""All threads have one environment, and sessions may begin in several."""


@contextmanager
def home_without_archive(config: Mapping[str, str], package: Path, cache: Path) -> Iterator[None]:
    """Inside the block a starting JVM uses such a home, unless the user has set a home or another Python."""
    with _changing_environment:
        home = None if _is_chosen(config) or not _is_importable(package) else _linked(package, cache)
        if home is None:
            yield
            return
        os.environ[_HOME] = str(home)
        try:
            yield
        finally:
            # For this process only: a child process may use another Spark.
            del os.environ[_HOME]


def _is_chosen(config: Mapping[str, str]) -> bool:
    python = config.get("spark.pyspark.python") or os.environ.get(_PYTHON) or sys.executable
    return _HOME in os.environ or python != sys.executable


def _is_importable(package: Path) -> bool:
    """Whether any process of this Python finds it: not, if it is on a path that only this process has."""
    return package.parent.resolve() == Path(sysconfig.get_path("purelib")).resolve()


def _linked(package: Path, cache: Path) -> Path | None:
    """Links to the parts of Spark; None where they cannot be made, for the home there is does too."""
    home = cache / f"spark-home-{hashlib.sha256(bytes(package)).hexdigest()[:16]}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        for part in _PARTS:
            if (package / part).exists():
                _link(home / part, package / part)
    except OSError:
        return None
    return home


def _link(link: Path, target: Path) -> None:
    with suppress(FileExistsError):  # another session made it, before or just now
        link.symlink_to(target)
