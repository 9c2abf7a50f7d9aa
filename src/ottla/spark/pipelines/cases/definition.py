"""Test cases of a pipeline. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_TIMESTAMP_MS: Final = 1_767_225_600_000
"""2026-01-01T00:00:00Z: the timestamp of records that do not name one, so that every run has the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRecord:
    value: bytes | None = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = DEFAULT_TIMESTAMP_MS
    topic: str | None = None
    """None for the first topic of the source."""
    partition: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedDeadLetter:
    value: bytes | None = None
    """None for any."""
    reason: str = ""
    """A part of the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    records: Mapping[str, Sequence[SampleRecord]]
    """By source."""
    rows: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """By sink: the expected rows, in any order. Other sinks are not compared."""
    dead_letters: Mapping[str, Sequence[ExpectedDeadLetter]] = field(default_factory=dict)
    """By source; other sources must have none."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """Paths of static tables, in place of those of the pipeline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    value: bytes | None
    key: bytes | None
    reason: str
    headers: tuple[tuple[str, bytes | None], ...] = ()
    """Without headers that a pipeline adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The output of a pipeline for sample records."""

    rows: Mapping[str, Sequence[dict[str, Any]]]
    """By sink."""
    dead_letters: Mapping[str, Sequence[DeadLetter]]
    """By source."""
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By sink: Spark's types of the columns, as JSON."""
