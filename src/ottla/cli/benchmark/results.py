"""Results of a load: rates and percentiles."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

PERCENTILES: Final = (50, 90, 99, 99.9)
COLUMNS: Final = (
    "measured", "messages", "seconds", "messages_per_s", "mb_per_s", "p50_ms", "p90_ms", "p99_ms", "p99.9_ms", "max_ms",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measured:
    name: str
    messages: int
    size_bytes: int
    """Of all their values together."""
    seconds: float
    latencies_s: list[float] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        ordered = sorted(self.latencies_s)
        named = {f"p{percent:g}_ms": _ms(percentile(ordered, percent)) for percent in PERCENTILES}
        return {
            "measured": self.name,
            "messages": self.messages,
            "seconds": round(self.seconds, 3),
            "messages_per_s": round(self.messages / self.seconds),
            "mb_per_s": round(self.size_bytes / self.seconds / 1e6, 2),
            **named,
            "max_ms": _ms(ordered[-1] if ordered else None),
        }


def percentile(ordered: Sequence[float], percent: float) -> float | None:
    """The percentile by nearest rank; None if there are no values."""
    if not ordered:
        return None
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 2)
