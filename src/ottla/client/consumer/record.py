"""The record type of a consumer."""

from __future__ import annotations

from typing import Protocol, TypeVar

K_co = TypeVar("K_co", covariant=True)
V_co = TypeVar("V_co", covariant=True)


class ConsumerRecord(Protocol[K_co, V_co]):
    """One record with its topic, partition and offset. At run time it is `ottla.records.reader.Record`."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970, UTC; set by the producer, or by the log if `is_log_append_time`."""

    @property
    def is_log_append_time(self) -> bool: ...
    @property
    def key(self) -> K_co | None: ...
    @property
    def value(self) -> V_co | None: ...
    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]: ...
