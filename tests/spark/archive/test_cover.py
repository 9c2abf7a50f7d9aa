"""Which files of an archive are valid."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.spark.archive.cover import Contents, contents_of, holes
from ottla.spark.archive.names import NO_DATE, FileName, Span, date_of, parse


def names(partition: int, start: int, end: int, *dates: str) -> list[str]:
    span = Span(partition, start, end)
    return [str(FileName(date, span, number, len(dates))) for number, date in enumerate(dates, 1)]


def contents(*files: list[str]) -> Contents:
    return contents_of({name: 10 for those in files for name in those})


def edges(found: Contents, partition: int = 0) -> list[tuple[int, int]]:
    return [(piece.start, piece.end) for piece in found.pieces.get(partition, ())]


def test_a_file_name_round_trips() -> None:
    name = FileName("2026-11-15", Span(3, 0, 1000), 1, 2)
    assert str(name) == "date=2026-11-15/partition-3_00000000000000000000-00000000000000001000_1of2.parquet"
    assert parse(str(name)) == name
    assert parse("date=2026-11-15/part-0.parquet") is None


def test_a_timestamp_without_a_date_is_in_the_null_partition() -> None:
    assert date_of(0) == "1970-01-01"
    assert date_of(-1) == "1969-12-31"
    assert date_of(10**9) == NO_DATE
    assert NO_DATE > "9999-12-31"


def test_a_stretch_counts_once_all_of_its_files_are_there() -> None:
    first, second = names(0, 0, 10, "a"), names(0, 10, 20, "a", "b")
    assert edges(contents(first, second)) == [(0, 10), (10, 20)]
    half = contents(first, second[:1])
    assert edges(half) == [(0, 10)]
    assert half.leftovers == tuple(second[:1])
    assert half.end(0) == 10


def test_small_stretches_no_longer_count_beside_the_one_they_were_merged_into() -> None:
    small = names(0, 0, 10, "a"), names(0, 10, 20, "a")
    found = contents(*small, names(0, 0, 20, "a"))
    assert edges(found) == [(0, 20)]
    assert found.leftovers == tuple(sorted(small[0] + small[1]))


def test_partitions_are_independent() -> None:
    found = contents(names(0, 0, 10, "a"), names(7, 5, 6, "a"))
    assert found.ends() == {0: 10, 7: 6}
    assert found.first(7) == 5
    assert found.first(1) is None


def test_missing_offsets_of_a_range_are_named() -> None:
    found = contents(names(0, 5, 10, "a"), names(0, 20, 30, "a"))
    span = Span(0, 0, 40)
    assert holes(found.within(span), span) == [Span(0, 0, 5), Span(0, 10, 20), Span(0, 30, 40)]
    inside = Span(0, 22, 25)
    assert holes(found.within(inside), inside) == []


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10), st.booleans()), max_size=12))
def test_each_offset_is_taken_once_however_stretches_overlap(made: list[tuple[int, int, bool]]) -> None:
    whole = [names(0, start, start + size, "a", "b") for start, size, is_whole in made if is_whole]
    half = [names(0, start, start + size, "a", "b")[:1] for start, size, is_whole in made if not is_whole]
    found = contents(*whole, *half)
    taken = [offset for start, end in edges(found) for offset in range(start, end)]
    there = {offset for start, size, is_whole in made if is_whole for offset in range(start, start + size)}
    assert taken == sorted(there)
    span = Span(0, 0, 50)
    missing = {offset for hole in holes(found.within(span), span) for offset in range(hole.start, hole.end)}
    assert missing == set(range(50)) - there
