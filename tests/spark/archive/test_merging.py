"""Which small ranges are merged."""

from ottla.spark.archive.cover import Piece, Stretch
from ottla.spark.archive.merging import LARGE_BYTES, TOGETHER, due, merged_span
from ottla.spark.archive.names import FileName, Span

KB = 1 << 10
MB = 1 << 20


def pieces(*sizes: int) -> list[Piece]:
    """Adjacent ranges of ten offsets each; a size of 0 is a gap."""
    made = []
    for number, size in enumerate(sizes):
        span = Span(0, number * 10, number * 10 + 10)
        if size:
            made.append(Piece(Stretch(span, (FileName("d", span, 1, 1),), size), span.start, span.end))
    return made


def offsets(groups: list[list[Stretch]]) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in map(merged_span, groups)]


def test_a_few_small_ranges_are_not_merged() -> None:
    assert due(pieces(*[KB] * (TOGETHER - 1))) == []


def test_eight_neighbours_become_one() -> None:
    assert offsets(due(pieces(*[KB] * TOGETHER))) == [(0, 80)]


def test_large_ranges_are_not_rewritten() -> None:
    assert offsets(due(pieces(LARGE_BYTES, *[KB] * TOGETHER))) == [(10, 90)]
    assert due(pieces(*[LARGE_BYTES] * 20)) == []


def test_a_merged_range_waits_for_others_of_its_size() -> None:
    assert due(pieces(2 * MB, *[KB] * (TOGETHER - 1))) == []
    assert offsets(due(pieces(*[2 * MB] * TOGETHER, KB))) == [(0, 90)]


def test_a_gap_is_not_merged_over() -> None:
    assert due(pieces(*[KB] * 5, 0, *[KB] * 5)) == []


def test_no_file_grows_without_limit() -> None:
    groups = due(pieces(*[60 * MB] * TOGETHER))
    assert offsets(groups) == [(0, 40), (40, 80)]


def test_a_thorough_merge_takes_any_two() -> None:
    assert offsets(due(pieces(KB, KB, 0, KB, 30 * MB, LARGE_BYTES, KB), is_thorough=True)) == [(0, 20), (30, 50)]


def test_each_record_is_rewritten_a_few_times_only() -> None:
    """A thousand rounds with few records each: total writes stay a small multiple of the input."""
    stretches: list[Stretch] = []
    written = 0
    for number in range(1000):
        span = Span(0, number, number + 1)
        stretches.append(Stretch(span, (FileName("d", span, 1, 1),), 300 * KB))
        while groups := due([Piece(each, each.span.start, each.span.end) for each in stretches]):
            for group in groups:
                size = sum(each.size_bytes for each in group)
                written += size
                span = merged_span(group)
                merged = Stretch(span, (FileName("d", span, 1, 1),), size)
                stretches = sorted([each for each in stretches if each not in group] + [merged], key=lambda e: e.span)
    assert written < 4 * 1000 * 300 * KB
    assert len(stretches) < 3 * TOGETHER + 1000 * 300 * KB / LARGE_BYTES
