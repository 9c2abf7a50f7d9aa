"""Outcomes of transactions as reported to their producers; written to a file for the analysis of failures."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from .history import Read


class Fate(Enum):
    GONE = "gone"
    """A commit was never requested, or it was aborted."""
    COMMITTED = "committed"
    UNKNOWN = "unknown"
    """A commit was requested, and its outcome is unknown."""


@dataclass
class Story:
    """One transaction."""

    worker: str
    number: int
    fate: Fate = Fate.GONE
    sent: dict[int, list[str]] = field(default_factory=dict)
    """Values by partition; a transaction is committed with all of them or not at all."""
    moved_to: int | None = None
    """The offset to which it moves its worker's group."""

    def next_value(self, partition: int) -> str:
        values = self.sent.setdefault(partition, [])
        value = f"{self.worker}:{self.number}:{partition}:{len(values)}"
        values.append(value)
        return value


class Stories:
    """All transactions, and the records read with read_committed. Written by the workers' threads."""

    def __init__(self, path: Path) -> None:
        self.told: list[Story] = []
        self.reads: list[Read] = []
        self._lock = threading.Lock()
        self._file = path.open("w", buffering=1 << 16)
        self._began_s = time.monotonic()

    def close(self) -> None:
        self._file.close()

    def _write(self, kind: str, *what: object) -> None:
        print(json.dumps([round(time.monotonic() - self._began_s, 4), kind, *what]), file=self._file)

    def event(self, what: str) -> None:
        with self._lock:
            self._write("event", what)

    def begins(self, worker: str, number: int) -> Story:
        with self._lock:
            story = Story(worker, number)
            self.told.append(story)
            self._write("begin", worker, number)
            return story

    def becomes(self, story: Story, fate: Fate, why: str = "") -> None:
        with self._lock:
            story.fate = fate
            self._write(fate.value, story.worker, story.number, story.sent, story.moved_to, why)

    def read(self, reads: Iterable[Read]) -> None:
        with self._lock:
            for read in reads:
                self.reads.append(read)
                self._write("read", *read)
