"""Dead letters are redriven to their topics once, unchanged."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Consumer, Producer
from ottla.broker.embedded import EmbeddedBroker
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.dead_letters.choosing import SkippedLetters
from ottla.spark.pipelines.definition import Pipeline
from ottla.spark.pipelines.loading import parse_pipeline
from ottla.spark.pipelines.redriving import redrive

FILE = """
broker = "{servers}"
[source.orders]
schema = "id int"
[sink.table]
kind = "parquet"
path = "table"
"""


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[str]:
    with EmbeddedBroker(tmp_path / "broker") as broker:
        with Admin(broker.bootstrap_servers) as admin:
            for topic in ("orders", "shop.dead-letters"):
                admin.create_topic(topic, partitions=2)
        yield broker.bootstrap_servers


def pipeline_at(servers: str) -> Pipeline:
    return parse_pipeline(FILE.format(servers=servers), Path("/jobs/shop.toml"), {})


def all_of(servers: str, topic: str) -> list[Any]:
    with Consumer(servers, [topic], auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        found: list[Any] = []
        while batch := consumer.poll(timeout_ms=500):
            found += batch
    return found


def bury(servers: str, value: bytes, offset: int, **more: bytes) -> None:
    headers: list[tuple[str, bytes | None]] = [
        ("trace", b"t"),
        ("ottla.error", b"why"),
        ("ottla.pipeline", more.pop("pipeline", b"shop")),
        ("ottla.topic", b"orders"),
        ("ottla.partition", b"1"),
        ("ottla.offset", b"%d" % offset),
        ("ottla.timestamp", b"5000"),
        *((f"ottla.{name.replace('_', '-')}", each) for name, each in more.items()),
    ]
    with Producer(servers) as producer:
        producer.send("shop.dead-letters", value, key=b"k", headers=headers)


def test_each_dead_letter_is_sent_back_once_and_as_it_was(servers: str) -> None:
    with Producer(servers) as producer:
        producer.send("orders", b"a value that was cut", key=b"k", partition=1, timestamp_ms=5000)
    bury(servers, b"bad", 7)
    bury(servers, b"a value", 0, value_bytes=b"20")
    bury(servers, b"a value", 99, value_bytes=b"20")
    bury(servers, b"of another", 8, pipeline=b"other")
    pipeline = pipeline_at(servers)

    done = redrive(pipeline)
    assert (done.sent, done.rows, done.gone) == (2, 1, 1)
    again = redrive(pipeline)
    assert (again.sent, again.rows, again.gone) == (0, 0, 0)

    _, *back = all_of(servers, "orders")
    assert sorted(record.value for record in back) == [b"a value that was cut", b"bad"]
    [bad] = [record for record in back if record.value == b"bad"]
    assert (bad.key, bad.partition, bad.timestamp, bad.headers) == (b"k", 1, 5000, (("trace", b"t"),))

    bury(servers, b"later", 9)
    assert redrive(pipeline).sent == 1


def test_a_redrive_with_an_expression_leaves_the_others_for_a_later_one(servers: str) -> None:
    for number in range(6):
        bury(servers, b'{"id": %d}' % number, number)
    bury(servers, b"no JSON", 6)
    bury(servers, b"of another", 8, pipeline=b"other")
    pipeline = pipeline_at(servers)

    done = redrive(pipeline, "value ->> '$.id' IN (1, 2, 4)")
    assert (done.sent, done.left, done.rows) == (3, 4, 1)
    again = redrive(pipeline, "value ->> '$.id' IN (1, 2, 5) AND reason = 'why' AND topic = 'orders' AND offset > 1")
    assert (again.sent, again.left) == (1, 3)
    rest = redrive(pipeline)
    assert (rest.sent, rest.left) == (3, 0)
    assert redrive(pipeline).sent == 0

    values = [record.value for record in all_of(servers, "orders")]
    assert sorted(values) == [b"no JSON", *(b'{"id": %d}' % number for number in range(6))]


def test_a_wrong_expression_is_refused_before_anything_is_sent(servers: str) -> None:
    bury(servers, b"bad", 7)
    for wrong in ("pric > 5", "value =", "1) FROM letters --"):
        with pytest.raises(ConfigError, match="--where: "):
            redrive(pipeline_at(servers), wrong)
    assert redrive(pipeline_at(servers)).sent == 1


def test_skipped_offsets_are_stored_as_ranges() -> None:
    left = SkippedLetters()
    for offset in (0, 1, 3, 4, 7, 9):
        left.take(offset, is_sent=offset == 4)
    assert left.note() == "left:0-3,7-9"
    known = SkippedLetters("left:0-3,7-9")
    known.take(1, is_sent=True)
    known.take(8, is_sent=False)
    known.take(9, is_sent=True)
    known.take(12, is_sent=False)
    assert (known.note(), known.first, 2 in known, 1 in known) == ("left:0,2-3,7-8,12", 0, True, False)
    assert SkippedLetters("").note() == ""
    many = SkippedLetters()
    for offset in range(2000):
        many.take(offset, is_sent=bool(offset % 2))
    with pytest.raises(ConfigError, match="too many to keep"):
        many.note()
