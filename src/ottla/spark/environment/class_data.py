"""An archive of the classes that Spark loads when it starts, so that later starts are about twice as fast (AppCDS)."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.core.java import Java

_SETTLED_S: Final = 15.0
"""The JVM takes seconds to write an archive when it exits; one that was not modified for this long is complete."""


def java_options(java: Java, spark_version: str, cache: Path) -> list[str]:
    """JVM options: use the archive, or write one at exit if there is none."""
    if not java.has_class_data:
        return []
    archive = cache / f"spark-{spark_version}-java-{java.version}.jsa"
    _adopt(archive)
    if archive.exists():
        return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    cache.mkdir(parents=True, exist_ok=True)
    # Each JVM writes a separate file: two that exit at once would corrupt a shared one.
    return [f"-XX:ArchiveClassesAtExit={archive}.{os.getpid()}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def _adopt(archive: Path) -> None:
    for written in archive.parent.glob(f"{archive.name}.*"):
        try:
            if time.time() - written.stat().st_mtime < _SETTLED_S:
                continue
            if archive.exists():
                written.unlink()
            else:
                written.replace(archive)
        except FileNotFoundError:
            continue  # another session was faster
