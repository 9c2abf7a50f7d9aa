"""Dead letters: the topic is read and parsed once, and each bad record is delivered once, whatever is killed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.spark.conftest import Cluster
from tests.spark.pipelines.conftest import Pipelines

from ottla.core.ids import TopicPartition
from ottla.spark.pipelines.dead_letters import delivering, rules
from ottla.spark.pipelines.dead_letters.rules import BLOCK, Report, report_in, rounds, spans_to_read
from ottla.spark.pipelines.queries import planned_queries

pytestmark = pytest.mark.timeout(300)
Send = Callable[..., None]
Read = Callable[[str], list[Any]]
A, B = TopicPartition("t", 0), TopicPartition("t", 1)
FILE = """
[source.orders]
topics = "{topic}"
schema = "id bigint, at timestamp"
event_time = "at"
watermark = "1 minute"
dead_letters = "{topic}.dead"
[step.minutes]
sql = "SELECT window.start AS minute, count(*) AS n FROM orders GROUP BY window(at, '1 minute')"
[sink.all]
kind = "parquet"
path = "table"
from = "orders"
[sink.minutes]
kind = "sqlite"
path = "minutes.db"
table = "minutes"
key = ["minute"]
"""
GOOD = {"id": 1, "at": "2026-01-01T00:00:00Z"}


def test_only_blocks_with_bad_records_are_read_again() -> None:
    report = Report(start={A: 0, B: 0}, end={A: 5000, B: 5000}, rows=10_000)
    assert spans_to_read({A: 0, B: 0}, report) == {}
    some = replace(report, bad_blocks=frozenset({(A, 2), (A, 3)}))
    assert spans_to_read({A: 0, B: 0}, some) == {A: (2 * BLOCK, 4 * BLOCK)}
    assert spans_to_read({A: 2500, B: 5000}, replace(some, start=None)) == {A: (2500, 4 * BLOCK)}


def test_everything_is_read_again_if_a_report_is_missing_or_nothing_was_parsed() -> None:
    report = Report(start={A: 3000}, end={A: 5000, B: 7}, rows=2000)
    assert spans_to_read({A: 1000}, report) == {A: (1000, 5000), B: (0, 7)}
    assert spans_to_read({A: 3000}, replace(report, rows=0)) == {A: (3000, 5000), B: (0, 7)}
    assert spans_to_read({A: 6000, B: 7}, report) == {}
    assert spans_to_read({}, Report(start=None, end={})) == {}


def test_rounds_cover_a_span_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "ROUND", 10)
    assert list(rounds({A: (0, 12), B: (3, 5)})) == [{A: (0, 5), B: (3, 5)}, {A: (5, 12)}]


def test_progress_reports_are_distinguished_by_topics() -> None:
    progress = {
        "sources": [{"endOffset": {"u": {"0": 1}}}, {"startOffset": '{"t":{"0":1}}', "endOffset": {"t": {"0": 5}}}],
        "observedMetrics": {"ottla_orders": {"rows": 4, "blocks": ["t/0/0"]}},
    }
    assert report_in(progress, "orders", ["t"]) == Report(
        start={A: 1}, end={A: 5}, rows=4, bad_blocks=frozenset({(A, 0)})
    )
    assert report_in({"sources": [{"endOffset": None}]}, "orders", ["t"]) is None


def test_a_source_is_read_once_and_its_dead_letters_are_delivered_once(
    pipelines: Pipelines, cluster: Cluster, send: Send, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = cluster.topic(partitions=2)
    text = FILE.format(topic=topic)
    scans: list[Any] = []
    bad = delivering.SourceDeadLetters._bad
    monkeypatch.setattr(delivering.SourceDeadLetters, "_bad", lambda *given: scans.append(given[2]) or bad(*given))
    send(topic, [GOOD] * 20)

    queries = pipelines.run(text).queries
    assert [(query.name, query.rows, query.lag) for query in queries] == [
        ("all", 20, 0),
        ("minutes", 20, 0),
        ("orders-dead-letters", 0, 0),
    ]
    assert scans == []

    send(topic, [GOOD, b"oops", GOOD, b"\xff"])
    queries = pipelines.run(text).queries
    assert (queries[-1].rows, len(scans)) == (2, 1)
    assert sorted(each.value for each in read(f"{topic}.dead")) == [b"oops", b"\xff"]
    assert pipelines.run(text).queries[-1].rows == 0
    assert len(read(f"{topic}.dead")) == 2


def test_undelivered_dead_letters_of_a_killed_run_are_delivered_by_the_next(
    pipelines: Pipelines, cluster: Cluster, send: Send, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = cluster.topic()
    text = FILE.format(topic=topic)
    send(topic, [GOOD, b"oops"])
    with monkeypatch.context() as patch:
        # As if it were killed when the micro-batch is in the table, and before its dead letters are delivered.
        patch.setattr("ottla.spark.pipelines.dead_letters.delivery_thread.DeliveryThread.hear", lambda *_: None)
        pipelines.run(text)
    assert read(f"{topic}.dead") == []

    assert pipelines.run(text).queries[-1].rows == 1
    [letter] = read(f"{topic}.dead")
    assert letter.value == b"oops"
    assert dict(letter.headers)["ottla.offset"] == b"1"


def test_a_failed_delivery_is_retried_without_duplicates(
    pipelines: Pipelines, cluster: Cluster, send: Send, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = cluster.topic()
    monkeypatch.setattr(rules, "ROUND", 3)
    send(topic, [b"%d oops" % number for number in range(10)])
    failures = [OSError("the network is away")]
    deliver = delivering.SourceDeadLetters._send

    def failing(box: Any, producer: Any, row: Any) -> None:
        deliver(box, producer, row)
        if row.value == b"4 oops" and failures:
            raise failures.pop()

    monkeypatch.setattr(delivering.SourceDeadLetters, "_send", failing)

    query = pipelines.run(FILE.format(topic=topic)).queries[-1]

    assert (query.rows, query.restarts) == (10, 1)
    assert [each.value for each in read(f"{topic}.dead")] == [b"%d oops" % number for number in range(10)]


def test_sources_that_share_a_topic_keep_a_query_for_their_dead_letters(pipelines: Pipelines, cluster: Cluster) -> None:
    topic = cluster.topic()
    file = FILE.format(topic=topic)
    other = f'[source.others]\ntopics = "{topic}"\nschema = "id string"\n'
    one, two = pipelines.load(file), pipelines.load(file + other)

    assert [query.carries for query in planned_queries(pipelines.spark, one)] == [("orders",), ()]
    assert [query.name for query in planned_queries(pipelines.spark, two)] == [
        "all",
        "minutes",
        "orders-dead-letters",
        "others-dead-letters",
    ]
