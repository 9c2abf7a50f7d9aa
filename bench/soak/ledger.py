"""Records acknowledgements during the load; the broker is checked against them afterwards."""

from __future__ import annotations

import threading
import zlib
from collections import defaultdict
from typing import NamedTuple


class At(NamedTuple):
    topic: str
    partition: int


class Ack(NamedTuple):
    """An acknowledged record and its offset."""

    offset: int
    producer: str
    number: int
    checksum: int


def make_value(producer: str, number: int, filling: bytes) -> bytes:
    return b"%s:%d:%s" % (producer.encode(), number, filling)


def read_value(value: bytes) -> tuple[str, int]:
    """The producer that made it, and the number it gave it."""
    producer, number, _ = value.split(b":", 2)
    return producer.decode(), int(number)


class Ledger:
    """Many threads write; it is read once they have ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.acks: dict[At, list[Ack]] = defaultdict(list)
        self.failures: list[str] = []
        """Records that a producer gave up on."""
        self.violations: list[str] = []
        """Violations observed during the load."""
        self.commits: dict[At, int] = {}
        """The highest offset that was acknowledged as committed."""
        self.topics: dict[str, bool | None] = {}
        """Whether a topic must exist; None if its creation or deletion was never answered."""
        self.partitions: dict[str, int] = {}
        """How many partitions a topic has at least."""
        self.counts: dict[str, int] = defaultdict(int)

    def acknowledged(self, at: At, offset: int, producer: str, number: int, value: bytes) -> None:
        with self._lock:
            self.acks[at].append(Ack(offset, producer, number, zlib.crc32(value)))

    def failed(self, producer: str, reason: object) -> None:
        with self._lock:
            self.failures.append(f"{producer}: {reason}")

    def violated(self, what: str) -> None:
        with self._lock:
            self.violations.append(what)

    def committed(self, at: At, offset: int) -> None:
        with self._lock:
            self.commits[at] = max(offset, self.commits.get(at, 0))

    def committed_so_far(self) -> dict[At, int]:
        with self._lock:
            return dict(self.commits)

    def count(self, what: str, by: int = 1) -> None:
        with self._lock:
            self.counts[what] += by
