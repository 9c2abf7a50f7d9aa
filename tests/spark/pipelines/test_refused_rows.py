"""Rows that a database rejects go to the dead-letter topic with the reason, and the rest is written."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import Cluster
from tests.spark.pipelines.conftest import Pipelines
from tests.spark.pipelines.test_sinks import forget_last_commit

from ottla.spark.pipelines.running import PipelineFailed

pytestmark = pytest.mark.timeout(300)
Send = Callable[..., None]
Read = Callable[[str], list[Any]]
FILE = """
[source.orders]
topics = "{topic}"
schema = "id bigint, city string, place struct<x:int>"
dead_letters = "none"
[sink.rows]
{sink}
table = "refusing"
key = "id"
dead_letters = "{dead}"
"""
ORDERS = [
    {"id": 1, "city": "Prag", "place": {"x": 1}},
    {"city": "no key"},
    {"id": 2, "city": "Nul\x00"},
    {"id": 3, "city": "too long a name"},
    {"id": 4, "city": "Wien"},
]


def errors(records: list[Any]) -> dict[str, str]:
    return {json.loads(record.value)["city"]: dict(record.headers)["ottla.error"].decode() for record in records}


def test_rows_rejected_by_postgresql_are_dead_letters_and_the_rest_is_written_once(
    pipelines: Pipelines, cluster: Cluster, send: Send, read: Read, tmp_path: Path, postgresql: str
) -> None:
    import psycopg

    with psycopg.connect(postgresql) as connection:
        connection.execute("CREATE TABLE refusing (id bigint PRIMARY KEY, city varchar(9), place jsonb)")
    topic, dead = cluster.topic(), cluster.topic()
    text = FILE.format(topic=topic, dead=dead, sink=f'kind = "postgresql"\nurl = "{postgresql}"')
    send(topic, ORDERS)

    assert pipelines.run(text).state == "finished"
    # As if the driver was killed after it sent the dead letters and before the database committed.
    forget_last_commit(tmp_path, "rows")
    with psycopg.connect(postgresql) as connection:
        connection.execute("DELETE FROM ottla_batches")
    assert pipelines.run(text).state == "finished"

    with psycopg.connect(postgresql) as connection:
        rows = connection.execute("SELECT id, city, place FROM refusing ORDER BY id").fetchall()
    assert rows == [(1, "Prag", {"x": 1}), (4, "Wien", None)]
    refused = read(dead)
    assert len(refused) == 3
    assert errors(refused) == {
        "no key": "key column id is null",
        "Nul\x00": "column city: PostgreSQL cannot store a NUL character in text",
        "too long a name": "value too long for type character varying(9)",
    }
    assert dict(refused[0].headers)["ottla.sink"] == b"rows"


def test_sqlite_rejects_rows_without_a_key_and_stops_without_a_dead_letter_topic(
    pipelines: Pipelines, cluster: Cluster, send: Send, read: Read, tmp_path: Path
) -> None:
    topic, dead = cluster.topic(), cluster.topic()
    text = FILE.format(topic=topic, dead=dead, sink='kind = "sqlite"\npath = "shop.db"')
    send(topic, ORDERS)

    assert pipelines.run(text).state == "finished"

    database = sqlite3.connect(tmp_path / "shop.db")
    rows = database.execute("SELECT id, place FROM refusing ORDER BY id").fetchall()
    database.close()
    assert rows == [(1, '{"x": 1}'), (2, None), (3, None), (4, None)]
    assert errors(read(dead)) == {"no key": "key column id is null"}

    stopping = FILE.format(topic=topic, dead="none", sink='kind = "sqlite"\npath = "other.db"')
    with pytest.raises(PipelineFailed, match="rejected 1 rows, and dead_letters is 'none': key column id is null"):
        pipelines.run(stopping, name="stopping", restarts=0)
