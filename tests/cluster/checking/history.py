"""The history of client operations, in order; written to a file for the analysis of failures."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Sent(NamedTuple):
    """One record: its producer, its number in the partition, and its outcome."""

    producer: str
    number: int
    partition: int

    @property
    def value(self) -> str:
        return f"{self.producer}:{self.partition}:{self.number}"

    @classmethod
    def parse(cls, value: str) -> Sent:
        producer, partition, number = value.split(":")
        return cls(producer, int(number), int(partition))


class Acknowledged(NamedTuple):
    sent: Sent
    offset: int


class Read(NamedTuple):
    reader: str
    partition: int
    offset: int
    value: str


class History:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.sent: set[Sent] = set()
        self.acknowledged: list[Acknowledged] = []
        self.failed: list[tuple[Sent, str]] = []
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

    def sends(self, sent: Sent) -> None:
        with self._lock:
            self.sent.add(sent)
            self._write("send", sent.value)

    def acknowledges(self, sent: Sent, offset: int) -> None:
        with self._lock:
            self.acknowledged.append(Acknowledged(sent, offset))
            self._write("ok", sent.value, offset)

    def fails(self, sent: Sent, why: str) -> None:
        with self._lock:
            self.failed.append((sent, why))
            self._write("fail", sent.value, why)

    def read(self, reads: Iterable[Read]) -> None:
        with self._lock:
            for read in reads:
                self.reads.append(read)
                self._write("read", *read)
