"""Which small ranges are merged. Pure rules.

A stretch is rewritten only together with seven others of its size, so that each record is rewritten a few times at most
however often small ones come in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.spark.archive.names import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ottla.spark.archive.cover import Piece, Stretch

TOGETHER: Final = 8
LARGE_BYTES: Final = 64 << 20
"""Ranges of this size are not merged."""
_MOST_BYTES: Final = 256 << 20
_TIERS: Final = (1 << 20, 8 << 20, LARGE_BYTES)


def due(pieces: Iterable[Piece], *, is_thorough: bool = False) -> list[list[Stretch]]:
    """The neighbours to be merged; if thorough, all that are small."""
    pieces = list(pieces)
    if is_thorough:
        return [group for run in _runs(pieces, len(_TIERS) - 1) for group in _groups(run) if len(group) > 1]
    for tier in range(len(_TIERS)):
        found = [
            group
            for run in _runs(pieces, tier)
            if sum(_tier(each) == tier for each in run) >= TOGETHER
            for group in _groups(run)
            if len(group) > 1
        ]
        if found:
            return found
    return []


def merged_span(stretches: list[Stretch]) -> Span:
    return Span(stretches[0].span.partition, stretches[0].span.start, stretches[-1].span.end)


def _tier(stretch: Stretch) -> int:
    return sum(stretch.size_bytes >= limit for limit in _TIERS)


def _runs(pieces: list[Piece], tier: int) -> Iterator[list[Stretch]]:
    """Neighbours without a gap, none of a higher tier."""
    run: list[Stretch] = []
    for each in pieces:
        belongs = each.is_whole and _tier(each.stretch) <= tier
        if run and not (belongs and run[-1].span.end == each.start):
            yield run
            run = []
        if belongs:
            run.append(each.stretch)
    if run:
        yield run


def _groups(run: list[Stretch]) -> Iterator[list[Stretch]]:
    """As many as make a file that is not too large."""
    group: list[Stretch] = []
    for each in run:
        if group and sum(one.size_bytes for one in group) + each.size_bytes > _MOST_BYTES:
            yield group
            group = []
        group.append(each)
    yield group
