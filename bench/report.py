"""Reports measurements as ratios against a baseline of the same run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    what: str
    ours: str
    theirs: str = ""
    ratio: float | None = None
    goal: str = ""
    is_reached: bool | None = None
    spread: str = ""
    """The range of the ratio over all rounds."""

    def without_goal(self, note: str) -> Row:
        return replace(self, what=self.what + note, goal="", is_reached=None)


def against(what: str, ours_us: float, theirs_us: float, *, at_most: float | None = None) -> Row:
    """Time per operation, ours over theirs: less is better."""
    ratio = ours_us / theirs_us
    return Row(
        what=what,
        ours=f"{ours_us:.2f} µs",
        theirs=f"{theirs_us:.2f} µs",
        ratio=ratio,
        goal="" if at_most is None else f"<= {at_most}x",
        is_reached=None if at_most is None else ratio <= at_most,
    )


def speed(what: str, ours: float, theirs: float, unit: str, *, at_least: float | None = None) -> Row:
    """Work per second, ours over theirs: more is better."""
    ratio = ours / theirs
    return Row(
        what=what,
        ours=f"{ours:.2f} {unit}",
        theirs=f"{theirs:.2f} {unit}",
        ratio=ratio,
        goal="" if at_least is None else f">= {at_least}x",
        is_reached=None if at_least is None else ratio >= at_least,
    )


def percentile(sorted_values: Sequence[float], share: float) -> float:
    return sorted_values[min(int(len(sorted_values) * share), len(sorted_values) - 1)]


def table(rows: Iterable[Row]) -> Iterator[str]:
    """Line by line, as they are measured."""
    yield "| what | ours | compared with | ratio | goal | |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}x"
        if row.spread:
            ratio += f" ({row.spread})"
        verdict = {None: "", True: "reached", False: "missed"}[row.is_reached]
        yield f"| {row.what} | {row.ours} | {row.theirs} | {ratio} | {row.goal} | {verdict} |"
