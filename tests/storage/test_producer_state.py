from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.core.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    TransactionCoordinatorFenced,
)
from ottla.records.batch import BatchHeader, read_header
from ottla.records.control import EndMarker, build_end_marker
from ottla.storage.producers.state import ProducerStates
from ottla.storage.segment_files.txn_index import AbortedTransaction

from .making import NOW, Producing, batch

LAST = (1 << 31) - 1
ABORT = EndMarker(is_commit=False, coordinator_epoch=3)
COMMIT = EndMarker(is_commit=True, coordinator_epoch=3)


def header(
    sequence: int, count: int = 1, epoch: int = 0, producer: int = 7, *, in_transaction: bool = False
) -> BatchHeader:
    by = Producing(producer, epoch, sequence, is_transactional=in_transaction)
    return read_header(batch(*[b"v"] * count, by=by))


def marker_header(marker: EndMarker = ABORT, epoch: int = 0, producer: int = 7, at: int = NOW) -> BatchHeader:
    return read_header(build_end_marker(marker, producer, epoch, at))


class Log:
    """Appends accepted batches, like a log."""

    def __init__(self) -> None:
        self.states = ProducerStates()
        self.next_offset = 0

    def append(self, *batches: BatchHeader) -> int:
        """Where the last of these batches begins now, or was already."""
        base_offset = -1
        for one in batches:
            known = self.states.check(one)
            base_offset = self.next_offset if known is None else known.base_offset
            if known is None:
                self.states.appended(one, base_offset)
                self.next_offset += one.last_offset_delta + 1
        return base_offset

    def end(self, marker: EndMarker, epoch: int = 0, producer: int = 7) -> AbortedTransaction | None:
        self.states.check_end(producer, epoch, marker)
        ended = self.states.ended(marker_header(marker, epoch, producer), self.next_offset, marker)
        self.next_offset += 1
        return ended


def test_batches_that_continue_the_sequence_are_accepted() -> None:
    log = Log()

    assert [log.append(header(0, 3)), log.append(header(3)), log.append(header(4, 2))] == [0, 3, 4]


def test_a_gap_and_a_step_back_are_out_of_order() -> None:
    log = Log()
    log.append(header(0, 3))

    for sequence in (1, 2, 4, LAST):
        with pytest.raises(OutOfOrderSequenceNumber, match=f"sequence {sequence}, expected 3"):
            log.append(header(sequence))


def test_each_of_the_last_five_batches_is_recognised_and_an_older_one_is_out_of_order() -> None:
    log = Log()
    for sequence in range(0, 12, 2):
        log.append(header(sequence, 2))

    assert [log.append(header(sequence, 2)) for sequence in range(2, 12, 2)] == [2, 4, 6, 8, 10]
    with pytest.raises(OutOfOrderSequenceNumber):
        log.append(header(0, 2))
    assert log.append(header(12)) == 12


def test_a_batch_is_a_duplicate_only_if_it_ends_with_the_same_sequence_too() -> None:
    log = Log()
    log.append(header(0, 3))

    with pytest.raises(OutOfOrderSequenceNumber):
        log.append(header(0, 2))
    with pytest.raises(OutOfOrderSequenceNumber):
        log.append(header(0, 4))


def test_producers_do_not_disturb_each_other() -> None:
    log = Log()

    assert log.append(header(0, producer=1)) == 0
    assert log.append(header(0, producer=2)) == 1
    assert log.append(header(1, producer=1)) == 2
    assert log.append(header(0, producer=2)) == 1


@pytest.mark.parametrize("sequence", [0, 1, 12345, LAST])
def test_an_unknown_producer_may_start_at_any_sequence(sequence: int) -> None:
    assert Log().append(header(sequence)) == 0


def test_the_sequence_wraps_around_to_zero() -> None:
    log = Log()
    log.append(header(LAST))

    assert log.append(header(0)) == 1
    assert log.append(header(LAST)) == 0


def test_a_batch_may_reach_across_the_highest_number() -> None:
    log = Log()
    log.append(header(LAST - 1, 4))

    assert log.append(header(LAST - 1, 4)) == 0
    with pytest.raises(OutOfOrderSequenceNumber, match="sequence 3, expected 2"):
        log.append(header(3))
    assert log.append(header(2)) == 4


def test_an_older_epoch_is_fenced_whatever_its_sequence() -> None:
    log = Log()
    log.append(header(0, epoch=1))

    for sequence in (0, 1, 2):
        with pytest.raises(InvalidProducerEpoch, match="epoch 0 is fenced by epoch 1"):
            log.append(header(sequence, epoch=0))


def test_a_newer_epoch_starts_at_sequence_zero() -> None:
    log = Log()
    log.append(header(0), header(1))

    with pytest.raises(OutOfOrderSequenceNumber):
        log.append(header(2, epoch=1))
    assert log.append(header(0, epoch=1)) == 2
    assert log.append(header(0, epoch=1)) == 2
    with pytest.raises(InvalidProducerEpoch):
        log.append(header(2, epoch=0))
    assert log.append(header(1, epoch=1)) == 3


def test_a_refused_batch_changes_nothing() -> None:
    log = Log()
    log.append(header(0))

    for wrong in (header(5), header(5, epoch=1)):
        with pytest.raises(OutOfOrderSequenceNumber):
            log.append(wrong)
    assert log.append(header(1)) == 1


def test_an_expired_producer_may_start_at_any_sequence() -> None:
    log = Log()
    log.append(header(0, producer=1), header(0, producer=2))
    assert log.states.expire(NOW + 999, 1000) == []

    assert log.states.expire(NOW + 1000, 1000) == [1, 2]

    assert log.states.producers == {}
    assert log.append(header(55, producer=1)) == 2


def test_a_producer_with_an_open_transaction_is_not_forgotten() -> None:
    log = Log()
    log.append(header(0, in_transaction=True))
    assert log.states.expire(NOW + 10**9, 1000) == []

    log.end(COMMIT)

    assert log.states.expire(NOW + 10**9, 1000) == [7]


def test_a_batch_without_a_timestamp_does_not_delay_expiry() -> None:
    states = ProducerStates()
    states.appended(read_header(batch(at=-1, by=Producing(7, 0, 0))), 0)

    assert states.expire(NOW, 1000) == [7]


def test_a_transaction_begins_with_its_first_batch_and_holds_readers_back() -> None:
    log = Log()
    log.append(header(0, producer=1))
    assert log.states.first_unstable_offset is None

    log.append(header(0, 2, in_transaction=True), header(2, in_transaction=True))
    log.append(header(0, producer=9, in_transaction=True))

    assert log.states.first_unstable_offset == 1
    assert log.end(COMMIT) is None
    assert log.states.first_unstable_offset == 4
    assert log.end(COMMIT, producer=9) is None
    assert log.states.first_unstable_offset is None


def test_an_abort_returns_the_aborted_range_and_the_new_stable_offset() -> None:
    log = Log()
    log.append(header(0, 11, producer=1))
    log.append(header(0, 2, in_transaction=True))
    log.append(header(0, 7, producer=9, in_transaction=True))

    assert log.end(ABORT) == AbortedTransaction(7, first_offset=11, last_offset=20, last_stable_offset=13)
    assert log.end(ABORT, producer=9) == AbortedTransaction(9, 13, 21, 22)


def test_ending_what_never_began_aborts_nothing() -> None:
    log = Log()

    assert log.end(ABORT) is None
    log.append(header(0))
    assert log.end(ABORT) is None


def test_the_sequence_goes_on_across_transactions_of_one_epoch() -> None:
    log = Log()
    log.append(header(0, in_transaction=True))
    log.end(COMMIT)

    assert log.append(header(1, in_transaction=True)) == 2
    assert log.append(header(0, in_transaction=True)) == 0


def test_a_marker_of_a_newer_epoch_fences_the_producer_and_resets_its_sequence() -> None:
    log = Log()
    log.append(header(0, in_transaction=True))

    assert log.end(ABORT, epoch=1) == AbortedTransaction(7, 0, 1, 2)

    with pytest.raises(InvalidProducerEpoch):
        log.append(header(1, in_transaction=True))
    with pytest.raises(OutOfOrderSequenceNumber):
        log.append(header(1, epoch=1, in_transaction=True))
    assert log.append(header(0, epoch=1, in_transaction=True)) == 2


def test_a_marker_of_an_older_epoch_or_an_older_coordinator_is_fenced() -> None:
    log = Log()
    log.append(header(0, epoch=2, in_transaction=True))
    with pytest.raises(InvalidProducerEpoch):
        log.end(ABORT, epoch=1)
    log.end(ABORT, epoch=2)

    log.append(header(1, epoch=2, in_transaction=True))
    with pytest.raises(TransactionCoordinatorFenced, match="coordinator epoch 3, not 2"):
        log.end(EndMarker(is_commit=True, coordinator_epoch=2), epoch=2)
    assert log.states.first_unstable_offset == 2


@pytest.mark.parametrize("is_commit", [True, False])
def test_with_transaction_version_2_a_late_marker_does_not_end_the_next_transaction(is_commit: bool) -> None:  # noqa: FBT001
    log = Log()
    marker = EndMarker(is_commit, coordinator_epoch=3, transaction_version=2)
    log.append(header(0, epoch=4, in_transaction=True))
    log.end(marker, epoch=5)
    log.end(marker, epoch=5)  # a copy that finds nothing open changes nothing
    log.append(header(0, epoch=5, in_transaction=True))

    with pytest.raises(InvalidProducerEpoch, match="late end marker"):
        log.end(marker, epoch=5)

    assert log.states.first_unstable_offset == 3
    log.end(marker, epoch=6)
    assert log.states.first_unstable_offset is None


def test_with_older_transaction_versions_a_marker_has_the_epoch_of_its_transaction() -> None:
    log = Log()
    log.append(header(0, epoch=4, in_transaction=True))

    log.end(EndMarker(is_commit=True, coordinator_epoch=3, transaction_version=1), epoch=4)

    assert log.states.first_unstable_offset is None


def test_within_a_transaction_a_batch_outside_of_it_is_refused() -> None:
    log = Log()
    log.append(header(0, in_transaction=True))

    with pytest.raises(InvalidTxnState):
        log.append(header(1))
    log.end(COMMIT)
    assert log.append(header(1)) == 2


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=40), st.integers(0, LAST))
def test_repeats_and_gaps_never_put_a_record_twice_or_out_of_order(steps: list[tuple[int, int]], first: int) -> None:
    """Each step sends a batch again, from this many batches back; 0 is the next one."""
    log = Log()
    sent: list[BatchHeader] = []
    sequence = first
    for back, count in steps:
        if back == 0 or back > len(sent):
            sent.append(header(sequence, count))
            sequence = (sequence + count) & LAST
            expected = log.next_offset
            assert log.append(sent[-1]) == expected
        else:
            before = log.next_offset
            assert log.append(sent[-back]) == before - sum(one.last_offset_delta + 1 for one in sent[-back:])
            assert log.next_offset == before


def test_a_transaction_is_open_in_its_epoch_until_its_end_is_counted() -> None:
    log = Log()
    assert not log.states.has_open(7, 0)

    log.append(header(0, in_transaction=True))
    assert log.states.has_open(7, 0)
    assert not log.states.has_open(7, 1)
    assert log.states.producers[7].ends == 0

    log.end(COMMIT)
    assert not log.states.has_open(7, 0)
    assert log.states.producers[7].ends == 1
