"""Transactional writes step by step, without Spark: visibility after interruptions."""

import itertools
from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'ottla[spark]'")

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from ottla import Admin, Consumer
from ottla.core.errors import ConfigError
from ottla.spark.errors import SinkError
from ottla.spark.link import link_to
from ottla.spark.writer import decisions
from ottla.spark.writer.attempts import Attempt
from ottla.spark.writer.committing import Commit
from ottla.spark.writer.options import SinkOptions, parse_sink
from ottla.spark.writer.transactions import TransactionEnds
from ottla.spark.writer.writers import TaskWrite, Written, commit_micro_batch, commit_named_write
from ottla.testing import EphemeralBroker

_SCHEMA = StructType([StructField("value", StringType())])
_names = itertools.count()


@pytest.fixture(scope="module")
def broker() -> Iterator[EphemeralBroker]:
    with EphemeralBroker() as running:
        yield running


class Sink:
    """A query's sink."""

    def __init__(self, broker: EphemeralBroker, **given: str) -> None:
        self.topic = f"sink-{next(_names)}"
        broker.create_topic(self.topic, partitions=2)
        options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": self.topic, **given}
        self.options: SinkOptions = parse_sink(options, _SCHEMA)
        self.query = f"query-of-{self.topic}"
        self._servers = broker.bootstrap_servers

    def write(self, *values: str, task: int = 0, batch: int = 0, attempt: int = 0) -> Written:
        rows = (
            pa.record_batch({"value": list(values)})
            if values
            else pa.record_batch({"value": pa.array([], pa.string())})
        )
        at = Attempt(self.query, "run", batch, task, attempt)
        return TaskWrite(self.options, at, may_be_decided=True).write(iter([rows]))

    def commit_named(self, *written: Written) -> None:
        commit_named_write(self.options, self.query, written)

    def commit(self, *written: Written, batch: int = 0) -> None:
        commit_micro_batch(self.options, written, batch)

    def give_up(self, *written: Written, batch: int = 0) -> None:
        prepared = [each.prepared for each in written if each.prepared is not None]
        driver = Commit(link_to(self.options.kafka).client, self.query, self.options.transaction_timeout_ms)
        self.call(driver.abort_micro_batch(batch, prepared))

    def commit_one(self, written: Written) -> None:
        """Commit as far as a driver that dies after this transaction."""
        assert written.prepared is not None
        self.call(TransactionEnds(link_to(self.options.kafka).client.router, self.query).commit(written.prepared))

    def call(self, work: object) -> object:
        return link_to(self.options.kafka).call(work)  # type: ignore[arg-type]

    def decide(self, *written: Written, batch: int = 0) -> None:
        """Decide like a driver that dies before it commits anything."""
        prepared = tuple(each.prepared for each in written if each.prepared is not None)
        admin = link_to(self.options.kafka).client.admin
        self.call(decisions.write_decision(admin, self.query, decisions.Decision(batch, len(written), prepared)))

    def visible(self, isolation: str = "read_committed") -> list[str]:
        """Values visible to readers, up to the last decided transaction."""
        options = {"auto_offset_reset": "earliest", "isolation_level": isolation}
        with Consumer(self._servers, [self.topic], **options) as consumer:  # type: ignore[arg-type]
            found: list[str] = []
            while records := consumer.poll(timeout_ms=150):
                found += [record.value.decode() for record in records if record.value is not None]
        return sorted(found)


def test_rows_are_visible_when_the_micro_batch_is_committed_and_not_before(broker: EphemeralBroker) -> None:
    sink = Sink(broker)
    written = [sink.write("a", "b"), sink.write("c", task=1), sink.write(task=2)]
    assert sink.visible() == []

    sink.commit(*written)
    assert sink.visible() == ["a", "b", "c"]


def test_undecided_writes_of_a_killed_run_are_written_again(broker: EphemeralBroker) -> None:
    sink = Sink(broker)
    sink.write("other", "rows")
    sink.write("than", task=1)

    sink.commit(sink.write("a", "b"), sink.write("c", task=1))
    assert sink.visible() == ["a", "b", "c"]
    assert sink.visible("read_uncommitted") == ["a", "b", "c", "other", "rows", "than"]


def test_decided_writes_of_a_killed_run_are_committed_and_not_written_again(broker: EphemeralBroker) -> None:
    sink = Sink(broker)
    before = [sink.write("a", "b"), sink.write("c", task=1), sink.write("d", task=2)]
    sink.decide(*before)
    sink.commit_one(before[1])

    again = [sink.write("other"), sink.write("rows", task=1)]
    assert [each.was_there for each in again] == [True, True]
    sink.commit(*again)
    assert sink.visible() == ["a", "b", "c", "d"]

    # Killed once more, after all that and before Spark knew.
    sink.commit(sink.write("x"), sink.write("y", task=1), sink.write(task=2))
    assert sink.visible() == ["a", "b", "c", "d"]


def test_a_named_write_that_is_repeated_after_its_end_writes_nothing(
    broker: EphemeralBroker, caplog: pytest.LogCaptureFixture
) -> None:
    sink = Sink(broker, writeId="load-1")
    sink.commit_named(sink.write("a"), sink.write("b", task=1))
    sink.commit_named(sink.write("a"), sink.write("b", task=1))

    assert sink.visible("read_uncommitted") == ["a", "b"]
    assert "the write load-1 was committed by an earlier call" in caplog.text


def test_a_named_write_rolls_back_what_an_undecided_call_with_more_tasks_left_open(broker: EphemeralBroker) -> None:
    sink, neighbour = Sink(broker, writeId="load-2"), Sink(broker, writeId="load-3")
    sink.write("old", task=0)
    sink.write("old", task=7)
    other = neighbour.write("c")

    sink.commit_named(sink.write("a"))

    assert sink.visible() == ["a"]
    with Admin(broker.bootstrap_servers) as admin:
        ongoing = {each.transactional_id for each in admin.list_transactions(states=["Ongoing"])}
    assert not {each for each in ongoing if each.startswith(f"ottla-sink-{sink.query}")}
    neighbour.commit_named(other)
    assert neighbour.visible() == ["c"]


def test_a_named_write_needs_transactions(broker: EphemeralBroker) -> None:
    with pytest.raises(ConfigError, match="writeId needs transactions"):
        Sink(broker, writeId="load-4", transactional="false")
    with pytest.raises(ConfigError, match="writeId must not be empty"):
        Sink(broker, writeId="")
    sink = Sink(broker, writeId="load-5")
    with (
        broker.faults.error("UNSUPPORTED_VERSION", api="InitProducerId"),
        pytest.raises(SinkError, match="a broker with transactions"),
    ):
        sink.write("a")


def test_a_repeated_micro_batch_without_rows_commits_what_was_decided(broker: EphemeralBroker) -> None:
    sink = Sink(broker)
    sink.decide(sink.write("a"), sink.write("b", task=1))

    sink.commit(sink.write(), sink.write(task=1))
    assert sink.visible() == ["a", "b"]


def test_a_decision_on_timed_out_transactions_is_completed(broker: EphemeralBroker) -> None:
    sink = Sink(broker)
    before = [sink.write("a"), sink.write("b", task=1)]
    sink.decide(*before)
    sink.commit_one(before[0])
    broker.clock.advance(901)

    again = [sink.write("a"), sink.write("b", task=1)]
    assert [each.was_there for each in again] == [True, False]
    sink.commit(*again)
    assert sink.visible() == ["a", "b"]

    sink.commit(sink.write("a"), sink.write("b", task=1))
    assert sink.visible() == ["a", "b"]


def test_lost_rows_of_an_incompletable_decision_are_reported(broker: EphemeralBroker) -> None:
    sink = Sink(broker)
    sink.decide(sink.write("a"), sink.write("b", task=1))
    broker.clock.advance(901)

    with pytest.raises(SinkError, match="written in part by 2 tasks and is repeated by 1"):
        sink.commit(sink.write("a", "b"))
    with pytest.raises(SinkError, match="the rows of tasks 0, 1 of micro-batch 0 are lost"):
        sink.commit(sink.write(), sink.write(task=1))


def test_nothing_is_committed_if_one_transaction_timed_out(broker: EphemeralBroker) -> None:
    sink = Sink(broker)
    late = sink.write("a")
    broker.clock.advance(901)
    written = [late, sink.write("b", task=1)]

    with pytest.raises(
        SinkError, match=r"task 0 was aborted before all tasks were done.*kafka\.transaction\.timeout\.ms"
    ):
        sink.commit(*written)
    sink.give_up(*written)
    assert sink.visible() == []


def test_an_abort_by_spark_during_a_commit_aborts_nothing(broker: EphemeralBroker) -> None:
    sink = Sink(broker)
    written = [sink.write("a"), sink.write("b", task=1)]
    sink.decide(*written)
    sink.give_up(*written)

    sink.commit(sink.write("a"), sink.write("b", task=1))
    assert sink.visible() == ["a", "b"]


def test_an_abort_by_spark_of_rewritten_rows_aborts_them(broker: EphemeralBroker) -> None:
    sink = Sink(broker)
    before = [sink.write("a"), sink.write("b", task=1)]
    sink.decide(*before)
    sink.commit_one(before[0])
    broker.clock.advance(901)
    sink.give_up(sink.write("a"), sink.write("b", task=1))

    # Nothing is open that readers would have to wait for.
    other = Sink(broker, topic=sink.topic)
    other.commit(other.write("c"))
    assert sink.visible() == ["a", "c"]


def test_either_of_two_attempts_of_a_task_may_be_committed(broker: EphemeralBroker) -> None:
    sink = Sink(broker)
    first, second = sink.write("a"), sink.write("a", attempt=1)
    sink.commit(first)
    assert sink.visible() == ["a"]

    sink = Sink(broker)
    first, second = sink.write("a"), sink.write("a", attempt=1)
    sink.commit(second)
    # The first attempt does not block readers: later records are visible.
    sink.commit(sink.write("b", batch=1), batch=1)
    assert sink.visible() == ["a", "b"]


def test_a_failed_attempt_aborts_its_writes(broker: EphemeralBroker) -> None:
    sink = Sink(broker)

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"value": ["a"]})
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        TaskWrite(sink.options, Attempt(sink.query, "run", 0, 0, 0), may_be_decided=True).write(rows())
    assert sink.visible() == []
    # It is aborted, and readers need not wait for it.
    other = Sink(broker, topic=sink.topic)
    other.commit(other.write("b"))
    assert sink.visible() == ["b"]


def test_a_decision_on_many_tasks_is_stored_in_parts(broker: EphemeralBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "_MOST_BYTES", 150)
    sink = Sink(broker)
    sink.decide(*(sink.write(f"{task:02}", task=task) for task in range(12)))
    with Admin(broker.bootstrap_servers) as admin:
        groups = [group for group in admin.list_groups() if sink.query in group.group]
    assert len(groups) > 3

    sink.commit(*(sink.write(f"{task:02}", task=task) for task in range(12)))
    assert sink.visible() == [f"{task:02}" for task in range(12)]


def test_without_transactions_rows_are_written_idempotently(broker: EphemeralBroker) -> None:
    sink = Sink(broker)
    with broker.faults.error("UNSUPPORTED_VERSION", api="InitProducerId"):
        sink.write("a", "b")
        written = sink.write("a", "b", attempt=1)
        assert written.prepared is None
        sink.commit(written)
    assert sink.visible("read_uncommitted") == ["a", "b"]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "ids that begin with ottla-sink-, or set transactional to false"),
        ("INVALID_TRANSACTION_TIMEOUT", "kafka.transaction.timeout.ms is 900000, but the broker's"),
    ],
)
def test_the_reason_why_transactions_are_unavailable_is_reported(
    broker: EphemeralBroker, code: str, reason: str
) -> None:
    with broker.faults.error(code, api="InitProducerId"), pytest.raises(SinkError, match=reason):
        Sink(broker).write("a")
