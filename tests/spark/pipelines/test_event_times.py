"""Event times far in the future are rejected, so that they do not move the watermark."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import Cluster
from tests.spark.pipelines.conftest import Pipelines

from ottla import Producer
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.loading import parse_pipeline

pytestmark = pytest.mark.timeout(300)
FILE = """
[source.orders]
topics = "{topic}"
schema = "id bigint, at timestamp"
event_time = "at"
watermark = "1 minute"
dead_letters = "{topic}.dead"
{guard}
[step.minutes]
sql = "SELECT window.start AS minute, count(*) AS n FROM orders GROUP BY window(at, '1 minute')"
[sink.table]
kind = "parquet"
path = "table"
"""
NOON_MS = 1_767_268_800_000
"""2026-01-01T12:00:00Z"""


def write(cluster: Cluster, topic: str, *times: str, timestamp_ms: int = NOON_MS) -> None:
    with Producer(cluster.servers) as producer:
        for time in times:
            value = json.dumps({"id": 1, "at": time}).encode()
            producer.send(topic, value, timestamp_ms=timestamp_ms)


def test_a_record_from_the_future_is_a_dead_letter_and_makes_no_other_record_late(
    pipelines: Pipelines, cluster: Cluster, read: Callable[[str], list[Any]]
) -> None:
    # The records are older than the default retention.
    topic = cluster.topic(**{"retention.ms": "-1"})
    write(cluster, topic, "2026-01-01T11:59:30Z", "2099-01-01T00:00:00Z")
    late = FILE.format(topic=topic, guard="")
    guarded = FILE.format(topic=topic, guard='max_event_time_ahead = "1 hour"')
    pipelines.run(guarded)
    write(cluster, topic, "2026-01-01T11:59:40Z", "2026-01-01T12:59:00Z", "2026-01-01T13:00:01Z")

    [query, letters] = pipelines.run(guarded).queries

    assert (query.late_rows, query.watermark) == (0, "2026-01-01T12:58:00.000Z")
    assert [(f"{row.minute:%H:%M}", row.n) for row in pipelines.rows()] == [("11:59", 2)]
    future, ahead = read(f"{topic}.dead")
    assert dict(future.headers)["ottla.error"].decode() == (
        "at: 2099-01-01T00:00:00Z is more than 3600 s ahead of the record's timestamp 2026-01-01T12:00:00Z"
    )
    assert json.loads(ahead.value)["at"] == "2026-01-01T13:00:01Z"
    assert letters.name == "orders-dead-letters"

    # Without the guard, from the same checkpoint: the watermark moves, and later records are late.
    write(cluster, topic, "2099-01-01T00:00:00Z")
    pipelines.run(late)
    write(cluster, topic, "2026-01-01T13:01:00Z")
    assert pipelines.run(late).queries[0].late_rows == 1


def test_the_guard_needs_a_column_of_the_record() -> None:
    text = FILE.format(topic="t", guard='max_event_time_ahead = "1 hour"')
    for wrong in (
        text.replace('event_time = "at"', ""),
        text.replace('event_time = "at"', 'event_time = "_timestamp"'),
    ):
        with pytest.raises(ConfigError, match="max_event_time_ahead: needs event_time with a column of the record"):
            parse_pipeline(wrong, Path("shop.toml"), {})
    with pytest.raises(ConfigError, match="'soon' is not a valid duration"):
        parse_pipeline(text.replace("1 hour", "soon"), Path("shop.toml"), {})
