"""Databases behind a JDBC driver: here Derby, whose driver comes with Spark."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.conftest import Cluster
from tests.spark.pipelines.conftest import Pipelines
from tests.spark.pipelines.test_sinks import forget_last_commit

from ottla import Producer
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.changes.rules import DELETE
from ottla.spark.pipelines.jdbc.connection import JdbcConnection
from ottla.spark.pipelines.jdbc.statements import DatabaseColumn, Merge, create, keep_batch
from ottla.spark.pipelines.running import PipelineFailed
from ottla.spark.pipelines.sinks.batch import MicroBatch
from ottla.spark.pipelines.sinks.jdbc import JdbcSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(600)
MERGE = Merge("shop.orders", "stage", {"c0": '"id"', "c1": '"at"'}, ("c0",))


def test_rows_with_the_keys_of_the_stage_are_deleted_and_those_of_the_stage_inserted() -> None:
    assert MERGE.statements(replaces_all=False) == [
        'DELETE FROM shop.orders WHERE EXISTS (SELECT 1 FROM stage WHERE stage.c0 = shop.orders."id")',
        'INSERT INTO shop.orders ("id", "at") SELECT c0, c1 FROM stage WHERE is_delete = 0 AND c0 IS NOT NULL',
    ]
    assert MERGE.statements(replaces_all=True)[0] == "DELETE FROM shop.orders"
    assert len(Merge("t", "s", {"c0": '"id"'}).statements(replaces_all=False)) == 1


def test_with_order_by_rows_older_than_the_tables_are_removed_from_the_stage() -> None:
    [stale, *_] = Merge("t", "s", {"c0": '"id"', "c1": '"at"'}, ("c0",), "c1").statements(replaces_all=False)
    assert stale == (
        'DELETE FROM s WHERE EXISTS (SELECT 1 FROM t WHERE s.c0 = t."id" '
        'AND t."at" IS NOT NULL AND (s.c1 IS NULL OR s.c1 < t."at"))'
    )


def test_a_key_must_not_be_null_and_texts_of_the_stage_are_as_long_as_those_of_the_table() -> None:
    assert create("t", [('"id"', "BIGINT"), ('"x"', "CLOB")], ['"id"']) == (
        'CREATE TABLE t ("id" BIGINT NOT NULL, "x" CLOB, PRIMARY KEY ("id"))'
    )
    assert [DatabaseColumn("x", *each).spark_type for each in ((12, 40), (2005, 40), (4, 10))] == [
        "varchar(40)",
        None,
        None,
    ]
    assert keep_batch("q", 3, is_first=False) == "UPDATE ottla_batches SET batch = 3 WHERE query_id = 'q'"


@pytest.fixture
def url(spark: "SparkSession", tmp_path: Path) -> str:
    """The URL of a separate database; Derby writes a log to the current folder by default."""
    jvm: Any = spark._jvm
    jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    return f"jdbc:derby:{tmp_path}/shop;create=true"


def derby(spark: "SparkSession", url: str, *statements: str) -> None:
    with JdbcConnection(spark, {"url": url}) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_table_is_merged_once_by_key_and_order_and_gets_new_columns(spark: "SparkSession", url: str) -> None:
    key = ("id", "kind")
    sink = JdbcSink(name="o", of="r", url=url, table="orders", key=key, mode="update", order_by="v")
    columns = f"id bigint, kind string, v int, t array<int>, {DELETE} boolean"
    refused: list[Any] = []

    def write(number: int, rows: list[tuple[Any, ...]], ddl: str = columns) -> int:
        frame = spark.createDataFrame(rows, ddl)
        return sink.write(frame, MicroBatch("abcdefgh-1", number, refused.extend))

    def rows() -> list[tuple[Any, ...]]:
        return sorted(map(tuple, spark.read.format("jdbc").options(url=url, dbtable="orders").load().collect()))

    assert (
        write(
            0, [(1, "a", 1, [1], False), (1, "a", 2, [2], False), (2, "b", 1, None, False), (None, "x", 1, None, False)]
        )
        == 2
    )
    assert rows() == [(1, "a", 2, "[2]"), (2, "b", 1, None)]
    assert [each.reason for each in refused] == ["key column id is null"]
    assert write(0, [(9, "a", 1, [1], False)]) == 0  # repeated
    # As a killed driver leaves it.
    derby(spark, url, "CREATE TABLE ottla_stage_abcdefgh_killed (c0 INT)")
    write(1, [(1, "a", 1, [1], True), (2, "b", 5, None, True), (3, "c", 1, None, False)])
    assert rows() == [(1, "a", 2, "[2]"), (3, "c", 1, None)]
    write(2, [(1, "a", 7, [9], False, "new")], f"{columns}, note string")
    assert rows() == [(1, "a", 7, "[9]", "new"), (3, "c", 1, None, None)]
    with JdbcConnection(spark, {"url": url}) as connection:
        assert connection.tables("ottla_stage_") == []
        assert connection.number("SELECT batch FROM ottla_batches") == 2


FILE = """
[source.orders]
topics = "{topic}"
schema = "id bigint, city string, tags array<int>{more}"
nulls = "delete"
key = "id"
dead_letters = "none"
[table.countries]
format = "jdbc"
url = "{url}"
query = "SELECT city, country FROM countries"
[step.named]
sql = "SELECT o.*, c.country FROM orders o LEFT JOIN countries c ON o.city = c.CITY"
[sink.database]
kind = "jdbc"
url = "{url}"
table = "orders"
key = ["id"]
dead_letters = "{topic}.dead"
"""


def test_a_database_follows_a_topic_once_with_lookups_that_are_current_and_columns_that_are_added(
    pipelines: Pipelines, cluster: Cluster, read: Callable[[str], list[Any]], url: str, tmp_path: Path
) -> None:
    topic = cluster.topic()
    file = FILE.format(topic=topic, url=url, more="")
    derby(pipelines.spark, url, "CREATE TABLE countries (city VARCHAR(20), country VARCHAR(20))")
    derby(pipelines.spark, url, "INSERT INTO countries VALUES ('Prag', 'CZ')")

    def write(records: Sequence[tuple[int | None, dict[str, Any] | None]]) -> None:
        with Producer(cluster.servers) as producer:
            for key, row in records:
                value = None if row is None else json.dumps({"id": key, **row}).encode()
                producer.send(topic, value, key=None if key is None else b"%d" % key)

    def rows(*columns: str) -> list[tuple[Any, ...]]:
        frame = pipelines.spark.read.format("jdbc").options(url=url, dbtable="orders").load()
        return sorted(tuple(row) for row in frame.select(*columns).collect())

    write([(1, {"city": "Prag", "tags": [1, 2]}), (2, {"city": "Linz"}), (2, None), (None, {"city": "no key"})])
    assert pipelines.run(file).state == "finished"
    assert rows("id", "city", "tags", "country") == [(1, "Prag", "[1,2]", "CZ")]
    [dead] = read(f"{topic}.dead")
    assert dict(dead.headers)["ottla.error"] == b"key column id is null"

    # As if the driver was killed after the commit, and another one before it.
    forget_last_commit(tmp_path, "database")
    derby(pipelines.spark, url, "INSERT INTO countries VALUES ('Linz', 'AT')")
    write([(1, None), (3, {"city": "Linz", "note": "new"}), (4, {"city": "Wien"})])
    assert pipelines.run(FILE.format(topic=topic, url=url, more=", note string")).state == "finished"

    assert rows("id", "city", "country", "note") == [(3, "Linz", "AT", "new"), (4, "Wien", None, None)]
    with JdbcConnection(pipelines.spark, {"url": url}) as connection:
        assert connection.tables("ottla_stage_") == []
        assert connection.number("SELECT MAX(batch) FROM ottla_batches") == 1


def test_a_failing_statement_has_the_databases_message_and_a_missing_driver_a_remedy(
    pipelines: Pipelines, cluster: Cluster, send: Callable[..., None], url: str
) -> None:
    topic = cluster.topic()
    derby(pipelines.spark, url, "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, city VARCHAR(4))")
    text = f"""
    [source.orders]
    topics = "{topic}"
    schema = "id bigint, city string"
    [sink.database]
    kind = "jdbc"
    url = "{url}"
    table = "orders"
    key = "id"
    """
    send(topic, [{"id": 1, "city": "Prag"}, {"id": 2, "city": "Budapest"}])
    with pytest.raises(PipelineFailed, match="truncation error"):
        pipelines.run(text, restarts=0)
    with pytest.raises(ConfigError, match=r'there is no JDBC driver for jdbc:nothing:x; name its jar with jars = \["d'):
        pipelines.run(text.replace(url, "jdbc:nothing:x"), name="other")
    with pytest.raises(ConfigError, match="must begin with jdbc:"):
        pipelines.load(text.replace(url, "mysql://x"))
    with pytest.raises(ConfigError, match=r"jars: there is no file .*no\.jar"):
        pipelines.load(text + '    jars = "no.jar"\n')
