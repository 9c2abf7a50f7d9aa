"""Sequence ids: one counter for all shards of a topic, stored in record headers."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from ottla.dmqp.frame import SEQUENCE_MASK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.records.reader import Record

SEQUENCE_HEADER: Final = "ottla-sequence"
_NUMBER: Final = struct.Struct(">Q")


class Counter:
    """Belongs to the event loop: taking numbers and appending happen without a yield in between."""

    __slots__ = ("next",)

    def __init__(self) -> None:
        self.next = 0

    def allows(self, wanted: int) -> bool:
        """Whether a PUSH with this sequence id may get the next number; 0 accepts any."""
        return wanted in (0, self.next & SEQUENCE_MASK)

    def take(self) -> int:
        taken = self.next
        self.next += 1
        return taken

    def give_back(self, first: int, count: int) -> None:
        """Return unused numbers. If others have been taken since, they are skipped forever."""
        if self.next == first + count:
            self.next = first

    def pass_over(self, sequence: int) -> None:
        """Skip a number that is in use."""
        self.next = max(self.next, sequence + 1)


def header_of(sequence: int) -> tuple[tuple[str, bytes], ...]:
    return ((SEQUENCE_HEADER, _NUMBER.pack(sequence)),)


def sequence_of(record: Record) -> int | None:
    """The sequence id of a message; None if it was not pushed over DMQP."""
    for name, value in record.headers:
        if name == SEQUENCE_HEADER and value is not None and len(value) == _NUMBER.size:
            number: int = _NUMBER.unpack(value)[0]
            return number
    return None


def last_sequence(records: Iterable[Record]) -> int | None:
    found = None
    for record in records:
        sequence = sequence_of(record)
        if sequence is not None:
            found = sequence
    return found
