"""Offsets and size of a partition whose log is closed, without opening a file."""

from __future__ import annotations

import os
from typing import Final, NamedTuple

from ottla.storage.files import ENCRYPTED_LOG, LOG


class LogFacts(NamedTuple):
    start: int
    end: int
    size: int
    segments: tuple[tuple[int, int], ...] = ()
    """The base offset and size of each segment of a closed log."""


NOTHING: Final = LogFacts(0, 0, 0)


def facts_of(folder: str, end: int | None, start: int) -> LogFacts | None:
    """The facts recorded by a clean shutdown: the end and, if raised, the start offset; None if unknown.

    A closed log does not change. A partition that was never written to has no folder.
    """
    try:
        with os.scandir(folder) as files:
            found = [(file.name, file.stat().st_size) for file in files if file.name.endswith((LOG, ENCRYPTED_LOG))]
    except FileNotFoundError:
        return NOTHING
    except OSError:
        return None
    names = [(name.partition(".")[0], size) for name, size in sorted(found)]
    if end is None or not names or not all(name.isdigit() for name, _ in names):
        return None
    segments = tuple((int(name), size) for name, size in names)
    return LogFacts(min(max(start, segments[0][0]), end), end, sum(size for _, size in segments), segments)
