"""What Ottla runs on: Python, its compiled parts, and Java, which only Spark needs."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.cli.checks.findings import Finding, note, ok, wrong

if TYPE_CHECKING:
    from collections.abc import Collection

OLDEST_JAVA: Final = 17
"""The oldest that Spark 3.5 and Spark 4 both run on."""
_JAVA_TIMEOUT_S: Final = 20
_JAVA_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')
_SAMPLE: Final = b"a message, and a message, and a message"


def check_software() -> list[Finding]:
    return [
        judge_python(platform.python_version(), has_uvloop=importlib.util.find_spec("uvloop") is not None),
        judge_codecs(is_compiled=_is_compiled(), broken=_broken_compressions()),
        judge_java(_java_version_output()),
    ]


def judge_python(version: str, *, has_uvloop: bool) -> Finding:
    if not has_uvloop:
        return note("python", f"{version}, without uvloop: connections are served more slowly", "pip install uvloop")
    return ok("python", version)


def judge_codecs(*, is_compiled: bool, broken: Collection[str]) -> Finding:
    if broken:
        return wrong("codecs", f"broken: {', '.join(broken)}", "pip install --force-reinstall cramjam")
    if not is_compiled:
        fix = "install a C compiler, then pip install --force-reinstall ottla"
        return note("codecs", "not compiled: many times slower", fix)
    return ok("codecs", "compiled; gzip, snappy, lz4 and zstd work")


def judge_java(says: str | None) -> Finding:
    """Judge the output of `java -version`; None if Java was not found."""
    fix = f"install a Java runtime of version {OLDEST_JAVA} or later and set JAVA_HOME, if you want to use Spark"
    if says is None:
        return note("java", "not found; only Spark needs it", fix)
    found = _JAVA_VERSION.search(says)
    if found is None:
        return note("java", "found, but its version is unknown", fix)
    if int(found[1]) < OLDEST_JAVA:
        return note("java", f"version {found[1]} is too old for Spark; nothing else needs it", fix)
    return ok("java", f"version {found[1]}, for Spark")


def _is_compiled() -> bool:
    with warnings.catch_warnings(action="ignore"):
        from ottla.records import payload

    return payload.IS_COMPILED


def _broken_compressions() -> list[str]:
    from ottla.records.compression import Compression, compress, decompress

    broken = []
    for codec in Compression:
        try:
            is_whole = bytes(decompress(codec, memoryview(compress(codec, _SAMPLE)))) == _SAMPLE
        except Exception:  # noqa: BLE001 - whatever it is, it does not work
            is_whole = False
        if not is_whole:
            broken.append(codec.name.lower())
    return broken


def _java_version_output() -> str | None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    java = java or shutil.which("java")
    if java is None:
        return None
    try:
        done = subprocess.run([java, "-version"], capture_output=True, timeout=_JAVA_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stderr + done.stdout).decode(errors="replace")
