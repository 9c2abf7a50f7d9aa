"""Producer ids and epochs of tasks."""

from dataclasses import replace

from ottla.spark.writer.attempts import MOST_ATTEMPTS, Attempt

FIRST = Attempt("query", "run", 7, 3, 0)


def test_a_repeated_task_has_the_same_producer_id_and_other_tasks_have_others() -> None:
    assert replace(FIRST, run_id="another", number=2).producer_id == FIRST.producer_id
    assert replace(FIRST, batch_id=8).producer_id == FIRST.producer_id
    assert len({FIRST.producer_id, replace(FIRST, task=4).producer_id, replace(FIRST, query_id="q").producer_id}) == 3
    assert 1 << 62 <= FIRST.producer_id < 1 << 63


def test_epochs_rise_with_micro_batches_and_attempts_and_never_run_out() -> None:
    epochs = [replace(FIRST, batch_id=batch).first_epoch for batch in range(4096)]

    assert epochs == sorted(set(epochs))
    assert max(epochs) + MOST_ATTEMPTS - 1 == 0x7FFF
    assert replace(FIRST, batch_id=4096).producer_id != FIRST.producer_id


def test_an_attempts_epoch_is_higher_than_all_earlier_ones() -> None:
    assert FIRST.epoch_after(None) == FIRST.first_epoch + 1
    assert FIRST.epoch_after(FIRST.first_epoch + 3) == FIRST.first_epoch + 4
    assert replace(FIRST, number=4).epoch_after(FIRST.first_epoch) == FIRST.first_epoch + 5
    assert FIRST.epoch_after(FIRST.first_epoch + MOST_ATTEMPTS - 1) is None


def test_records_of_this_micro_batch_are_known_by_producer_id_and_epoch() -> None:
    assert FIRST.is_of_this_batch(FIRST.producer_id, FIRST.first_epoch + 5)
    assert not FIRST.is_of_this_batch(FIRST.producer_id, replace(FIRST, batch_id=8).first_epoch)
    assert not FIRST.is_of_this_batch(1, FIRST.first_epoch)
