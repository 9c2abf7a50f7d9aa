"""Dead letters: the original records, with headers that describe why they were rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.records.encode import BatchBuilder

if TYPE_CHECKING:
    from ottla.records.reader import Record

PREFIX: Final = "ottla-dead-letter-"
"""The prefix of the added headers."""


class Letters:
    """Collects dead letters into batches of the topic's maximum size."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._builder: BatchBuilder | None = None
        self._built: list[bytearray] = []

    def add(self, record: Record, more: tuple[tuple[str, bytes], ...]) -> None:
        fields = (record.timestamp, record.key, record.value, (*record.headers, *more))
        if self._builder is not None and not self._builder.append(*fields):
            self.built()
        if self._builder is None:
            self._builder = BatchBuilder(max_bytes=self._max_bytes)
            self._builder.append(*fields)

    def built(self) -> list[bytearray]:
        """All batches built so far."""
        if self._builder is not None:
            self._built.append(self._builder.build())
            self._builder = None
        return self._built
