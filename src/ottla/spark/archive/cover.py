"""Which files of an archive are valid. Pure rules.

A stretch counts once all of its files are there: what a crash left half published does not. Where stretches overlap, as
they do while small ones are replaced by a large one, each offset is taken from one of them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from ottla.spark.archive.names import FileName, Span, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Stretch:
    """Offsets that were published together, a file for each day."""

    span: Span
    files: tuple[FileName, ...]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Of a stretch, the offsets from `start` to below `end`."""

    stretch: Stretch
    start: int
    end: int

    @property
    def is_whole(self) -> bool:
        return (self.start, self.end) == (self.stretch.span.start, self.stretch.span.end)


@dataclass(frozen=True, slots=True)
class Contents:
    """The archived offsets of a topic."""

    pieces: dict[int, tuple[Piece, ...]]
    """Of each partition, in the order of offsets, each offset at most once."""
    leftovers: tuple[str, ...]
    """Files that do not count: half published, or replaced."""

    def first(self, partition: int) -> int | None:
        pieces = self.pieces.get(partition)
        return pieces[0].start if pieces else None

    def end(self, partition: int) -> int | None:
        """All offsets below are archived, or were deleted before."""
        pieces = self.pieces.get(partition)
        return pieces[-1].end if pieces else None

    def ends(self) -> dict[int, int]:
        return {partition: pieces[-1].end for partition, pieces in self.pieces.items()}

    def within(self, span: Span) -> list[Piece]:
        """The archived pieces of a range."""
        clipped = (
            Piece(each.stretch, max(each.start, span.start), min(each.end, span.end))
            for each in self.pieces.get(span.partition, ())
        )
        return [each for each in clipped if each.start < each.end]


def contents_of(sizes: Mapping[str, int]) -> Contents:
    """The valid ranges of these files; names are relative to the topic's folder."""
    by_span: dict[tuple[Span, int], dict[int, FileName]] = defaultdict(dict)
    for text in sizes:
        if (name := parse(text)) is not None:
            by_span[name.span, name.count][name.number] = name
    whole = [
        Stretch(span, tuple(files.values()), sum(sizes[str(file)] for file in files.values()))
        for (span, count), files in by_span.items()
        if set(files) == set(range(1, count + 1))
    ]
    by_partition: dict[int, list[Stretch]] = defaultdict(list)
    for each in whole:
        by_partition[each.span.partition].append(each)
    pieces = {partition: _cover(stretches) for partition, stretches in sorted(by_partition.items())}
    used = {str(file) for those in pieces.values() for piece in those for file in piece.stretch.files}
    return Contents(pieces, tuple(sorted(text for text in sizes if parse(text) is not None and text not in used)))


def _cover(stretches: Iterable[Stretch]) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    reach = 0
    for each in sorted(stretches, key=lambda each: (each.span.start, -each.span.end, len(each.files))):
        if each.span.end > reach:
            pieces.append(Piece(each, max(each.span.start, reach), each.span.end))
            reach = each.span.end
    return tuple(pieces)


def holes(pieces: Iterable[Piece], span: Span) -> list[Span]:
    """The gaps of a range, given its pieces."""
    edges = [span.start, *(edge for each in pieces for edge in (each.start, each.end)), span.end]
    return [
        Span(span.partition, start, end)
        for number, (start, end) in enumerate(pairwise(edges))
        if number % 2 == 0 and start < end
    ]
