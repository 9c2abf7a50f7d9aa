"""Tables in an object store: each row once, as on a disk, through restarts, kills, new columns and merges."""

import json
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import QUICK_JVM, Cluster
from tests.spark.pipelines.conftest import Pipelines
from tests.spark.pipelines.object_stores import ACCESS_KEY, SECRET_KEY, Bucket
from tests.spark.pipelines.test_evolution import no_refusals
from tests.spark.pipelines.test_faults import Driver, count, wait_until

from ottla import Producer
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.changes.rules import DELETE
from ottla.spark.pipelines.definition import Pipeline
from ottla.spark.pipelines.loading import load_pipeline, parse_pipeline
from ottla.spark.pipelines.sinks.batch import MicroBatch
from ottla.spark.pipelines.sinks.tables import TableSink
from ottla.spark.pipelines.stores.checking import check_stores
from ottla.spark.pipelines.stores.opening import store_files

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
Send = Callable[..., None]
KILLS = int(os.environ.get("SPARK_KILLS", "0"))

HEAD = """
every = "100 ms"
[source.orders]
topics = "{topic}"
schema = "{schema}"
max_per_batch = 400
dead_letters = "none"
"""
SINK = """
[sink.{kind}]
kind = "{kind}"
path = "{place}/{kind}"
from = "orders"
{more}
"""
ICEBERG = """
table = "shop.orders"
catalog.type = "sql"
catalog.uri = "sqlite:///{folder}/catalog.db"
"""


def sink(kind: str, place: str, folder: Path, more: str = "") -> str:
    return SINK.format(kind=kind, place=place, more=more + (ICEBERG.format(folder=folder) if kind == "iceberg" else ""))


def rows_of(kind: str, place: str, bucket: Bucket, folder: Path) -> list[dict[str, Any]]:
    """As other programs read them."""
    table = {"parquet": parquet_rows, "delta": delta_rows, "iceberg": iceberg_rows}[kind](place, bucket, folder)
    return sorted(table.to_pylist(), key=lambda row: row["id"])


def parquet_rows(place: str, bucket: Bucket, _: Path) -> Any:
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyarrow.fs import S3FileSystem

    store = S3FileSystem(
        endpoint_override=bucket.endpoint, access_key=ACCESS_KEY, secret_key=SECRET_KEY, region="us-east-1"
    )
    path = f"{place.partition('://')[2]}/parquet"
    found = ds.dataset(path, filesystem=store, partitioning="hive")
    schema = pa.unify_schemas([found.schema, *(ds.dataset(each, filesystem=store).schema for each in found.files)])
    return ds.dataset(path, schema=schema, filesystem=store, partitioning="hive").to_table()


def delta_rows(place: str, bucket: Bucket, _: Path) -> Any:
    import deltalake

    return deltalake.DeltaTable(f"{place}/delta", storage_options=bucket.options).to_pyarrow_table()


def iceberg_rows(_: str, bucket: Bucket, folder: Path) -> Any:
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog(
        "ottla",
        type="sql",
        uri=f"sqlite:///{folder}/catalog.db",
        **{
            "s3.endpoint": bucket.endpoint,
            "s3.access-key-id": ACCESS_KEY,
            "s3.secret-access-key": SECRET_KEY,
            "s3.region": "us-east-1",
        },
    )
    return catalog.load_table("shop.orders").scan().to_arrow()


@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
def test_access_to_a_store_is_checked_before_spark_starts_without_leftovers(
    kind: str, bucket: Bucket, tmp_path: Path
) -> None:
    def loaded(address: str, catalog: str = "sqlite") -> Pipeline:
        text = HEAD.format(topic="none", schema="id bigint") + bucket.storage() + sink(kind, address, tmp_path)
        return parse_pipeline(text.replace("sqlite:", f"{catalog}:"), tmp_path / "shop.toml", {})

    check_stores(loaded(f"{bucket.address}/tried"))
    with pytest.raises(ConfigError, match=rf"\[sink.{kind}\] path: s3://nothing.* there is no bucket nothing"):
        check_stores(loaded("s3://nothing/x"))
    if kind == "iceberg":
        with pytest.raises(ConfigError, match=r"\[sink.iceberg\] catalog: cannot be used: "):
            check_stores(loaded(f"{bucket.address}/tried", "no-such-database"))
    tried = loaded(bucket.address + "/x").sinks[kind]
    assert isinstance(tried, TableSink)
    assert store_files(f"{bucket.address}/tried", tried.storage).listed() == []


@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
def test_a_table_in_a_store_grows_over_restarts_gets_new_columns_and_is_merged(
    kind: str, pipelines: Pipelines, cluster: Cluster, send: Send, bucket: Bucket, tmp_path: Path
) -> None:
    topic = cluster.topic()
    place = f"{bucket.address}/{topic}"
    text = HEAD + bucket.storage() + sink(kind, place, tmp_path)
    old = text.format(topic=topic, schema="id bigint, price decimal(10,2)")
    new = text.format(topic=topic, schema="id bigint, price decimal(10,2), city string, at timestamp")
    expected = []
    for number in range(3):
        row = {"id": number, "price": 9.5} | ({"city": "Prag"} if number else {})
        send(topic, [row])
        expected.append((number, "9.50", "Prag" if number else None))
        assert pipelines.run(new if number else old, topic).state == "finished"

    def seen() -> list[Any]:
        return [(row["id"], str(row["price"]), row["city"]) for row in rows_of(kind, place, bucket, tmp_path)]

    assert seen() == expected
    loaded = pipelines.load(new, topic).sinks[kind]
    assert isinstance(loaded, TableSink)
    before = len(loaded.open_table().files())
    tidied = loaded.tidy(orphan_age_s=-1)
    assert tidied.merged_files >= 2
    assert len(loaded.open_table().files()) < before
    assert seen() == expected


def test_partitions_have_the_values_of_their_rows_whatever_is_in_them(
    pipelines: Pipelines, cluster: Cluster, send: Send, bucket: Bucket, tmp_path: Path
) -> None:
    from ottla.spark.pipelines.replay import table_frame

    topic = cluster.topic()
    place = f"{bucket.address}/{topic}"
    cities = ["Prag", "a/b = c%d: é", None, "Prag"]
    send(topic, [{"id": number, "city": city} for number, city in enumerate(cities)])
    text = HEAD + bucket.storage()
    for kind in ("parquet", "delta", "iceberg"):
        text += sink(kind, place, tmp_path, 'partition_by = "city"')
    schema = "id bigint, city string"
    assert pipelines.run(text.format(topic=topic, schema=schema), topic).state == "finished"
    for kind in ("parquet", "delta", "iceberg"):
        rows = rows_of(kind, place, bucket, tmp_path)
        assert [(row["id"], row["city"]) for row in rows] == list(enumerate(cities)), kind
        # As `ottla pipeline replay` reads them.
        loaded = pipelines.load(text.format(topic=topic, schema=schema), topic).sinks[kind]
        assert isinstance(loaded, TableSink)
        read = table_frame(pipelines.spark, loaded)
        assert sorted((row.id, row.city) for row in read.collect()) == list(enumerate(cities)), kind


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_rows_with_a_key_replace_and_delete_others_in_a_store(
    kind: str, pipelines: Pipelines, bucket: Bucket, tmp_path: Path
) -> None:
    place = f"{bucket.address}/{tmp_path.name}-{kind}"
    text = HEAD.format(topic="none", schema="id bigint") + bucket.storage()
    loaded = pipelines.load(text + sink(kind, place, tmp_path, 'key = "id"\n'), f"merge-{kind}").sinks[kind]
    assert isinstance(loaded, TableSink)
    batches = [
        [(number, "old", False) for number in range(4)],
        [(1, "new", False), (2, None, True), (4, "new", False)],
    ]
    for number, rows in enumerate(batches):
        frame = pipelines.spark.createDataFrame(rows, f"id bigint, city string, {DELETE} boolean")
        batch = MicroBatch("query-of-merge", number, no_refusals)
        assert loaded.write(frame, batch) == len(rows)
        assert loaded.write(frame, batch) == 0

    def seen() -> list[Any]:
        return [(row["id"], row["city"]) for row in rows_of(kind, place, bucket, tmp_path)]

    assert seen() == [(0, "old"), (1, "new"), (3, "old"), (4, "new")]
    loaded.tidy(orphan_age_s=-1)
    assert seen() == [(0, "old"), (1, "new"), (3, "old"), (4, "new")]


@pytest.mark.skipif(not KILLS, reason="long; `make pipeline-test` runs it")
def test_each_row_is_in_a_store_once_after_driver_kills_with_new_columns_merges_and_expiry(
    pipelines: Pipelines, cluster: Cluster, bucket: Bucket, tmp_path: Path
) -> None:
    topic = cluster.topic(partitions=2)
    place = f"{bucket.address}/{topic}"
    text = f'broker = "{cluster.servers}"\n' + HEAD + bucket.storage()
    for kind in ("parquet", "delta", "iceberg"):
        expiry = "" if kind == "parquet" else "keep_versions = 2\n"
        text += sink(kind, place, tmp_path, f"compact_every = 3\n{expiry}")
    text += f'[sink.out]\nkind = "topic"\ntopic = "{topic}.out"\nfrom = "orders"\n'
    text += f'[spark]\n"spark.driver.extraJavaOptions" = "{QUICK_JVM}"\n'
    file = tmp_path / f"{topic}.toml"
    chance = random.Random(os.environ.get("SPARK_SEED", "11"))
    total = 1500 * KILLS
    is_over = threading.Event()

    def load() -> None:
        with Producer(cluster.servers) as producer:
            for number in range(total):
                producer.send(topic, json.dumps({"id": number, "city": f"city {number}"}).encode())
                if number % 100 == 0:
                    producer.flush()
                    is_over.wait(0.05)

    loader = threading.Thread(target=load)
    loader.start()
    written = 0
    for number in range(KILLS):
        # The second and every later driver finds a new column.
        file.write_text(text.format(topic=topic, schema="id bigint" if number == 0 else "id bigint, city string"))
        driver = Driver(file)
        try:
            wait_until(lambda: count(cluster.servers, f"{topic}.out") > written or not driver.is_alive())
            assert driver.is_alive(), (tmp_path / "driver.log").read_text()
            is_over.wait(chance.random() * 2)
        finally:
            driver.kill()
        written = count(cluster.servers, f"{topic}.out")
    is_over.set()
    loader.join()
    file.write_text(text.format(topic=topic, schema="id bigint, city string"))
    assert pipelines.run_loaded(load_pipeline(file)).state == "finished"

    for kind in ("parquet", "delta", "iceberg"):
        rows = rows_of(kind, place, bucket, tmp_path)
        assert [row["id"] for row in rows] == list(range(total)), kind
        # Rows from before the change have no city; what was read after it has the right one.
        cities = {row["id"]: row["city"] for row in rows}
        assert all(city in (None, f"city {number}") for number, city in cities.items()), kind
        assert any(city is not None for city in cities.values()), kind
