"""Each kind of sink: its contents, and idempotent micro-batches."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import Cluster
from tests.spark.pipelines.conftest import Pipelines

from ottla.spark.pipelines.sinks.tables import TableSink

pytestmark = pytest.mark.timeout(300)
Send = Callable[..., None]
Read = Callable[[str], list[Any]]

TABLES = {
    "parquet": 'kind = "parquet"\npath = "table"',
    "delta": 'kind = "delta"\npath = "table"',
    "iceberg": 'kind = "iceberg"\npath = "warehouse"\ntable = "shop.orders"',
}
PACKAGES = {"parquet": "pyarrow", "delta": "deltalake", "iceberg": "pyiceberg"}


def forget_last_commit(folder: Path, query: str) -> None:
    """As if the driver was killed after writing and before Spark's commit."""
    commits = folder / "pipeline.state" / "checkpoint" / query / "commits"
    last = max((file for file in commits.iterdir() if file.name.isdigit()), key=lambda file: int(file.name))
    for file in commits.glob(f"*{last.name}*"):
        file.unlink()


def table_rows(kind: str, folder: Path) -> list[tuple[Any, ...]]:
    """By the format's own library, not by Spark."""
    if kind == "parquet":
        import pyarrow.dataset as ds

        table = ds.dataset(folder / "table", partitioning="hive").to_table()
    elif kind == "delta":
        import deltalake

        table = deltalake.DeltaTable(str(folder / "table")).to_pyarrow_table()
    else:
        from pyiceberg.catalog import load_catalog

        catalog = load_catalog("ottla", type="sql", uri=f"sqlite:///{folder / 'warehouse' / 'catalog.db'}")
        table = catalog.load_table("shop.orders").scan().to_arrow()
    return sorted((row["id"], row["city"]) for row in table.to_pylist())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("kind", TABLES)
def test_a_table_has_each_row_once_and_can_be_compacted(
    pipelines: Pipelines, cluster: Cluster, send: Send, tmp_path: Path, kind: str
) -> None:
    pytest.importorskip(PACKAGES[kind])
    topic = cluster.topic(partitions=2)
    text = f"""
[source.orders]
topics = "{topic}"
schema = "id bigint, city string"
max_per_batch = 40
dead_letters = "none"
[sink.table]
partition_by = "city"
{TABLES[kind]}
"""
    orders = [{"id": number, "city": ["Prag", "a/b c", None][number % 3]} for number in range(100)]
    expected = sorted([(order["id"], order["city"]) for order in orders], key=str)
    send(topic, orders)

    pipelines.run(text)
    forget_last_commit(tmp_path, "table")
    pipelines.run(text)

    def found() -> list[tuple[Any, ...]]:
        return sorted(table_rows(kind, tmp_path), key=str)

    assert found() == expected
    sink = pipelines.load(text).sinks["table"]
    assert isinstance(sink, TableSink)
    before = len(sink.open_table().files())
    stray = Path(sink.open_table().files()[0]).parent / "00000000-00000009-0.parquet"
    if kind == "parquet":
        stray = tmp_path / "table" / "_ottla" / "dead" / "part-0.parquet"
        stray.parent.mkdir()
    stray.write_bytes(b"left by a killed job")
    tidied = sink.tidy(orphan_age_s=-1)
    assert (tidied.merged_files, tidied.new_files, tidied.orphans) == (before, 3, 1)
    assert len(sink.open_table().files()) == 3
    assert not stray.exists()
    assert found() == expected
    # And it continues from there.
    send(topic, [{"id": 1000, "city": "Brno"}])
    pipelines.run(text)
    assert found() == sorted([*expected, (1000, "Brno")], key=str)


def test_a_half_written_parquet_commit_is_completed(pipelines: Pipelines, cluster: Cluster, send: Send) -> None:
    topic = cluster.topic()
    text = f"""
[source.orders]
topics = "{topic}"
schema = "id bigint, city string"
dead_letters = "none"
[sink.table]
{TABLES["parquet"]}
"""
    send(topic, [{"id": 1}])
    pipelines.run(text)
    [file] = (pipelines.folder / "table").glob("*.parquet")
    [plan] = (pipelines.folder / "table" / "_ottla").glob("*-*.json")
    # Killed after the plan was written and before the file was moved.
    [[staged, _]] = json.loads(plan.read_text())["moves"]
    (pipelines.folder / "table" / staged).parent.mkdir(parents=True)
    file.rename(pipelines.folder / "table" / staged)
    forget_last_commit(pipelines.folder, "table")

    pipelines.run(text)

    assert [row.id for row in pipelines.rows()] == [1]
    assert file.exists()


def test_rows_go_to_another_topic_once(pipelines: Pipelines, cluster: Cluster, send: Send, read: Read) -> None:
    topic = cluster.topic()
    text = f"""
        [source.orders]
        topics = "{topic}"
        schema = "id bigint, city string"
        dead_letters = "none"
        [step.doubled]
        sql = "SELECT id * 2 AS id, city FROM orders"
        [sink.out]
        kind = "topic"
        topic = "{topic}.out"
        key = "city"
    """  # noqa: S608 - of our own
    send(topic, [{"id": number, "city": "Prag"} for number in range(20)])

    pipelines.run(text)
    forget_last_commit(pipelines.folder, "out")
    pipelines.run(text)

    records = read(f"{topic}.out")
    assert {record.key for record in records} == {b"Prag"}
    assert sorted(json.loads(record.value)["id"] for record in records) == [2 * number for number in range(20)]


DATABASE_STEP = """
[source.orders]
topics = "{topic}"
schema = "id bigint, city string, tags array<string>"
dead_letters = "none"
[step.rows]
sql = "SELECT id, city, tags, _timestamp AS at FROM orders"
"""


def test_rows_with_a_key_replace_each_other_in_sqlite(
    pipelines: Pipelines, cluster: Cluster, send: Send, tmp_path: Path
) -> None:
    topic = cluster.topic()
    text = (
        DATABASE_STEP.format(topic=topic)
        + f"""
[sink.upserts]
kind = "sqlite"
path = "{tmp_path}/shop.db"
table = "orders"
key = "id"
[sink.log]
kind = "sqlite"
path = "{tmp_path}/shop.db"
table = "all orders"
"""
    )
    send(topic, [{"id": 1, "city": "Prag", "tags": ["a"]}, {"id": 2, "city": "Wien"}])
    pipelines.run(text)
    send(topic, [{"id": 1, "city": "Brno"}])
    pipelines.run(text)
    for query in ("upserts", "log"):
        forget_last_commit(tmp_path, query)
    pipelines.run(text)

    database = sqlite3.connect(tmp_path / "shop.db")
    assert sorted(database.execute("SELECT id, city FROM orders")) == [(1, "Brno"), (2, "Wien")]
    rows = sorted(database.execute('SELECT id, city, tags FROM "all orders"'))
    assert rows == [(1, "Brno", None), (1, "Prag", '["a"]'), (2, "Wien", None)]
    database.close()


def test_rows_with_a_key_replace_each_other_in_postgresql(
    pipelines: Pipelines, cluster: Cluster, send: Send, tmp_path: Path, postgresql: str
) -> None:
    import psycopg

    topic = cluster.topic()
    text = (
        DATABASE_STEP.format(topic=topic)
        + f"""
[sink.upserts]
kind = "postgresql"
url = "{postgresql}"
table = "orders"
key = "id"
"""
    )
    send(topic, [{"id": 1, "city": "Prag", "tags": ["a"]}, {"id": 2, "city": "Wien"}])
    pipelines.run(text)
    send(topic, [{"id": 1, "city": "Brno", "tags": []}])
    pipelines.run(text)
    forget_last_commit(tmp_path, "upserts")
    pipelines.run(text)

    with psycopg.connect(postgresql) as connection:
        rows = connection.execute("SELECT id, city, tags FROM orders ORDER BY id").fetchall()
    assert rows == [(1, "Brno", []), (2, "Wien", None)]
