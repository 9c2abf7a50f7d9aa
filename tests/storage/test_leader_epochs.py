from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.leader_epochs import LeaderEpochs


def test_without_epochs_every_lookup_is_undefined() -> None:
    epochs = LeaderEpochs()

    assert epochs.latest == -1
    assert epochs.end_of(3, 100) == (-1, -1)
    assert epochs.epoch_at(0) == -1


def test_an_epoch_starts_once() -> None:
    epochs = LeaderEpochs()

    assert epochs.begin(0, 0)
    assert not epochs.begin(0, 10)
    assert epochs.begin(2, 10)
    assert not epochs.begin(1, 20)
    assert epochs.entries == [(0, 0), (2, 10)]
    assert epochs.latest == 2


def test_an_epoch_without_records_is_replaced_by_the_next() -> None:
    epochs = LeaderEpochs([(0, 0), (1, 10)])

    epochs.begin(2, 10)

    assert epochs.entries == [(0, 0), (2, 10)]


def test_an_epoch_ends_where_the_next_begins_and_the_last_one_at_the_end_of_the_log() -> None:
    epochs = LeaderEpochs([(1, 0), (2, 10), (5, 40)])

    assert epochs.end_of(1, 100) == (1, 10)
    assert epochs.end_of(2, 100) == (2, 40)
    assert epochs.end_of(4, 100) == (2, 40)
    assert epochs.end_of(5, 100) == (5, 100)


def test_an_epoch_before_the_first_known_ended_where_that_one_begins() -> None:
    epochs = LeaderEpochs([(3, 40), (5, 60)])

    assert [epochs.end_of(epoch, 100) for epoch in (0, 2)] == [(0, 40), (2, 40)]


def test_later_epochs_are_undefined() -> None:
    epochs = LeaderEpochs([(3, 40), (5, 60)])

    assert [epochs.end_of(epoch, 100) for epoch in (-1, 6)] == [(-1, -1)] * 2


def test_the_current_epoch_of_a_leader_counts_before_its_first_record() -> None:
    known = LeaderEpochs([(1, 0), (2, 10)])

    led = known.with_current(5, 100)

    assert [led.end_of(epoch, 100) for epoch in (1, 2, 4, 5, 6)] == [(1, 10), (2, 100), (2, 100), (5, 100), (-1, -1)]
    assert known.entries == [(1, 0), (2, 10)]
    assert known.with_current(2, 100) is known
    assert LeaderEpochs().with_current(3, 7).end_of(1, 7) == (1, 7)


def test_each_offset_belongs_to_the_epoch_that_began_last() -> None:
    epochs = LeaderEpochs([(1, 5), (2, 10)])

    assert [epochs.epoch_at(offset) for offset in (4, 5, 9, 10, 99)] == [-1, 1, 1, 2, 2]


def test_truncation_drops_epochs_at_or_above_the_new_end() -> None:
    epochs = LeaderEpochs([(0, 0), (1, 10), (2, 20)])

    assert not epochs.drop_from(21)
    assert epochs.drop_from(20)
    assert epochs.entries == [(0, 0), (1, 10)]
    assert epochs.drop_from(0)
    assert epochs.entries == []
    assert not epochs.drop_from(0)


def test_a_raised_start_drops_what_ended_before_and_raises_the_first_left() -> None:
    epochs = LeaderEpochs([(0, 0), (1, 10), (2, 20)])

    assert not epochs.drop_before(0)
    assert epochs.drop_before(15)
    assert epochs.entries == [(1, 15), (2, 20)]
    assert epochs.drop_before(20)
    assert epochs.entries == [(2, 20)]
    assert epochs.drop_before(463)
    assert epochs.entries == [(2, 463)]
    assert not epochs.drop_before(463)
    assert not epochs.drop_before(400)


@given(st.lists(st.tuples(st.sampled_from(["begin", "before", "from"]), st.integers(0, 9), st.integers(0, 9))))
def test_epochs_and_offsets_always_increase(steps: list[tuple[str, int, int]]) -> None:
    epochs = LeaderEpochs()
    for step, epoch, offset in steps:
        before = list(epochs.entries)
        if step == "begin":
            did_change = epochs.begin(epoch, offset)
        elif step == "before":
            did_change = epochs.drop_before(offset)
        else:
            did_change = epochs.drop_from(offset)
        assert did_change == (epochs.entries != before)
        for (first, first_start), (second, second_start) in zip(epochs.entries, epochs.entries[1:], strict=False):
            assert first < second
            assert first_start < second_start
