"""Pipeline tables in third-party object stores: commits, retries, new columns, file merges, a second writer."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from interop.object_store_servers import azurite_server, versitygw_server
from ottla.columns.types import Struct, struct_of
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.evolution.deciding import evolution_for
from ottla.spark.pipelines.sinks.registry import SINKS
from ottla.spark.pipelines.sinks.tables import TableSink
from ottla.spark.pipelines.stores.checking import check_access
from ottla.spark.pipelines.stores.files import Files, TableBusy
from ottla.spark.pipelines.stores.opening import store_files
from ottla.spark.pipelines.stores.settings import StorageSettings
from ottla.spark.pipelines.tables.interface import Table
from ottla.spark.pipelines.tables.staging import BatchId, StagedFile, staging_name

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
OLD = struct_of([("id", "bigint")])
NEW = struct_of([("id", "bigint"), ("city", "string")])


@dataclass(frozen=True)
class Store:
    address: str
    settings: StorageSettings
    folder: Path

    def sink(self, kind: str, keep_versions: int | None = None) -> TableSink:
        catalog = {"type": "sql", "uri": f"sqlite:///{self.folder}/catalog.db"} if kind == "iceberg" else {}
        path = f"{self.address}/tables/{kind}"
        given: dict[str, object] = {"path": path, "table": "shop.orders", "storage": self.settings, "catalog": catalog}
        given["keep_versions"] = keep_versions
        made = SINKS.find(kind)
        known = {key: value for key, value in given.items() if key in made.__struct_fields__}
        sink = made(name="orders", of="rows", **known)  # type: ignore[arg-type]  # keys of its kind
        assert isinstance(sink, TableSink)
        return sink


@pytest.fixture(scope="module", params=["s3", "abfs"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "s3":
        server = versitygw_server(request.getfixturevalue("versitygw"), folder / "server")
    else:
        server = azurite_server(request.getfixturevalue("azurite"))
    with server as (address, settings):
        yield Store(address, settings, folder)


def staged(sink: TableSink, table: Table, batch: BatchId, rows: dict[str, list[Any]]) -> list[StagedFile]:
    """As a worker of Spark's writes them."""
    import pyarrow as pa

    from ottla.spark.pipelines.stores.writing import RowWriter

    target = f"{staging_name(batch)}/" if sink.kind == "parquet" else ""
    content = pa.RecordBatch.from_pydict(rows)
    write = RowWriter(
        address=files_of(table).root,
        settings=sink.storage,
        target=target,
        prefix=batch.prefix,
        partition_by=(),
        schema=content.schema,
    )
    [written] = write(iter([content]))
    return [StagedFile(target + row["name"], row["name"], row["rows"], row["size"], ()) for row in written.to_pylist()]


def commit(sink: TableSink, number: int, rows: dict[str, list[Any]], columns: Struct = OLD) -> bool:
    table = sink.open_table()
    batch = BatchId("query-of-orders", number)
    if table.has(batch):
        return False
    evolution = evolution_for(sink, table.columns(), columns)
    table.commit(staged(sink, table, batch, rows), batch, evolution)
    return True


def files_of(table: Table) -> Files:
    """Where its data files are: the folder of an Iceberg table is one in another."""
    return table._files  # type: ignore[attr-defined,no-any-return]  # noqa: SLF001


def ids(sink: TableSink) -> list[int]:
    import pyarrow.parquet as pq

    table = sink.open_table()
    files = files_of(table)
    names = [files.name_of(each) or "" for each in table.files()]
    return sorted(number for name in names for number in pq.ParquetFile(files.source(name)).read()["id"].to_pylist())


@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
def test_a_table_is_committed_evolved_merged_and_cleaned_up(store: Store, kind: str) -> None:
    sink = store.sink(kind, None if kind == "parquet" else 3)
    for number in range(4):
        assert commit(sink, number, {"id": [number]})
        assert not commit(sink, number, {"id": [number]})
    for number in range(4, 12):
        assert commit(sink, number, {"id": [number], "city": ["Prag"]}, NEW)
    assert ids(sink) == list(range(12))
    known = sink.open_table().columns()
    assert known is not None
    assert known.columns == NEW

    tidied = sink.open_table().tidy(target_file_bytes=1 << 20, orphan_age_s=-1)
    assert tidied.merged_files >= 8
    assert ids(sink) == list(range(12))
    assert not commit(sink, 11, {"id": [11], "city": ["Prag"]}, NEW)


def test_a_second_writer_of_a_parquet_folder_is_refused(store: Store) -> None:
    files = store_files(f"{store.address}/busy", store.settings)
    files.replace_version("plan.json", b"1", None)
    with pytest.raises(TableBusy):
        files.replace_version("plan.json", b"2", None)
    read = files.read("plan.json")
    assert read is not None
    files.replace_version("plan.json", b"3", read.version)
    with pytest.raises(TableBusy):
        files.replace_version("plan.json", b"4", read.version)


def test_access_is_checked_and_a_missing_bucket_named(store: Store) -> None:
    check_access(f"{store.address}/somewhere", store.settings)
    missing = store.address.replace("lake", "nothing")
    with pytest.raises(ConfigError, match="there is no bucket nothing"):
        check_access(f"{missing}/somewhere", store.settings)
