"""The commit of a Parquet folder in a store, step by step: a store copies and removes where a disk renames."""

import json
from datetime import timedelta
from typing import Any

import pytest

pytest.importorskip("obstore", reason="obstore is not installed: pip install 'ottla[s3]'")

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
from obstore.store import MemoryStore

from ottla.columns.evolution import Evolution, WidenColumn
from ottla.columns.types import struct_of
from ottla.spark.pipelines.stores.files import TableBusy
from ottla.spark.pipelines.stores.object_files import ObjectFiles, StoreFailed, opened_store
from ottla.spark.pipelines.stores.settings import StorageSettings
from ottla.spark.pipelines.stores.writing import RowWriter, folder_of_partition
from ottla.spark.pipelines.tables.parquet import ParquetTable
from ottla.spark.pipelines.tables.staging import BatchId, StagedFile, partition_of, staging_name

COLUMNS = struct_of([("id", "bigint")])
LONG, INT = pa.int64(), pa.int32()


class Killed(Exception):
    pass


class Store(ObjectFiles):
    """A store in memory that may fail after any number of modifying requests."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        super().__init__("s3://lake/orders", StorageSettings(region="us-east-1"), store or MemoryStore())
        self.left = 1000

    def _done(self, what: str, name: str, request: Any) -> Any:
        if what in ("write", "copy", "remove"):
            if not self.left:
                raise Killed
            self.left -= 1
        return super()._done(what, name, request)

    def data(self) -> list[str]:
        return [each.name for each in self.listed() if not each.name.startswith("_")]

    def rows(self) -> list[int]:
        """The rows that a reader of the folder finds."""
        return sorted(number for name in self.data() for number in pq.read_table(self.source(name))["id"].to_pylist())

    def stage(self, batch: BatchId, *files: list[int], kind: pa.DataType = LONG) -> list[StagedFile]:
        staged = []
        for number, ids in enumerate(files):
            name = f"{batch.prefix}{number}.parquet"
            place = f"{staging_name(batch)}/{name}"
            with self.sink(place) as sink:
                pq.write_table(pa.table({"id": pa.array(ids, kind)}), sink)
            staged.append(StagedFile(place, name, len(ids), self.info(place).size, ()))
        return staged


def write(store: Store, batch: BatchId, *files: list[int]) -> None:
    table = ParquetTable(store)
    if not table.has(batch):
        table.commit(store.stage(batch, *files), batch, Evolution(COLUMNS))


def test_a_commit_interrupted_after_any_request_is_applied_once_when_repeated() -> None:
    for lives in range(12):
        store = Store()
        write(store, BatchId("query-one", 0), [1], [2])
        store.left = lives
        is_killed = False
        try:
            write(store, BatchId("query-one", 1), [3], [4])
        except Killed:
            is_killed = True
        store.left = 1000
        # Another process merges files before the killed commit is repeated.
        ParquetTable(store).tidy(target_file_bytes=1 << 20, orphan_age_s=3600)
        write(store, BatchId("query-one", 1), [3], [4])
        assert store.rows() == [1, 2, 3, 4], lives
    assert not is_killed


def test_a_widening_that_dies_after_any_request_leaves_each_row_once_with_the_wider_type() -> None:
    wider = Evolution(COLUMNS, (WidenColumn(("id",), "int", "bigint"),))

    def write_wider(store: Store) -> None:
        table, batch = ParquetTable(store), BatchId("query-one", 2)
        if not table.has(batch):
            table.commit(store.stage(batch, [1 << 40]), batch, wider)

    for lives in range(20):
        store = Store()
        for number in range(2):
            batch = BatchId("query-one", number)
            table = ParquetTable(store)
            assert not table.has(batch)
            table.commit(store.stage(batch, [number], kind=INT), batch, Evolution(struct_of([("id", "int")])))
        store.left = lives
        is_killed = False
        try:
            write_wider(store)
        except Killed:
            is_killed = True
        store.left = 1000
        # Compacted before the killed one is repeated: files that it replaces must not be merged.
        ParquetTable(store).tidy(target_file_bytes=1 << 20, orphan_age_s=3600)
        write_wider(store)
        assert store.rows() == [0, 1, 1 << 40], lives
        assert {pq.read_schema(store.source(name)).field("id").type for name in store.data()} == {LONG}
        found = ParquetTable(store).columns()
        assert found is not None
        assert found.columns == COLUMNS
    assert not is_killed


def test_a_merge_interrupted_after_any_request_neither_loses_nor_duplicates_rows() -> None:
    for lives in range(12):
        store = Store()
        for number in range(3):
            write(store, BatchId("query-one", number), [number])
        store.left = lives
        is_killed = False
        try:
            ParquetTable(store).tidy(target_file_bytes=1 << 20, orphan_age_s=3600)
        except Killed:
            is_killed = True
        store.left = 1000
        ParquetTable(store).tidy(target_file_bytes=1 << 20, orphan_age_s=-1)
        assert store.rows() == [0, 1, 2], lives
        assert len([each for each in store.listed() if each.name.endswith(".parquet")]) == 1
    assert not is_killed


def test_a_second_writer_is_refused_and_nothing_is_written_twice() -> None:
    memory = MemoryStore()
    one, other = Store(memory), Store(memory)
    batch = BatchId("query-one", 0)
    first, second = ParquetTable(one), ParquetTable(other)
    assert not first.has(batch)
    assert not second.has(batch)
    first.commit(one.stage(batch, [1]), batch, Evolution(COLUMNS))
    with pytest.raises(TableBusy, match="was written by another process"):
        second.commit(other.stage(batch, [1]), batch, Evolution(COLUMNS))
    assert ParquetTable(other).has(batch)
    assert one.rows() == [1]


def test_staged_files_without_a_plan_are_removed_after_a_while() -> None:
    store = Store()
    write(store, BatchId("query-one", 0), [1])
    store.stage(BatchId("query-one", 1), [2])
    assert ParquetTable(store).remove_orphans(3600) == 0
    assert ParquetTable(store).remove_orphans(-1) == 1
    assert store.rows() == [1]


def test_an_object_does_not_exist_if_its_write_failed() -> None:
    store = Store()

    def write_half() -> None:
        with store.sink("half") as sink:
            sink.write(b"x" * 100)
            raise Killed

    with pytest.raises(Killed):
        write_half()
    assert store.listed() == []


def test_removing_goes_on_past_what_is_missing() -> None:
    store = Store()
    for name in ("a", "c"):
        store.replace(name, b"")
    store.remove(["a", "b", "c"])
    assert store.listed() == []


def test_s3_and_s3a_addresses_are_equal() -> None:
    store = Store()
    assert store.name_of("s3a://lake/orders/x/y.parquet") == "x/y.parquet"
    assert store.name_of("s3://lake/orders-old/y.parquet") is None


def test_a_partition_folder_encodes_its_values_safely() -> None:
    folder = folder_of_partition(["city", "day"], ["a/b = c%", None])
    assert folder.count("/") == 2
    assert partition_of(folder.split("/")[:-1]) == (("city", "a/b = c%"), ("day", None))


def test_a_worker_writes_one_file_for_each_partition_and_says_what_is_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    monkeypatch.setattr("ottla.spark.pipelines.stores.object_files.ObjectFiles", lambda *_: store)
    write = RowWriter(
        address="s3://lake/orders",
        settings=StorageSettings(),
        target="staged/",
        prefix="q-",
        partition_by=("city",),
        schema=pa.schema([("id", pa.int64())]),
    )
    batches = [pa.RecordBatch.from_pydict({"id": [n, n + 1], "city": ["a", "b" if n else "a"]}) for n in (0, 2)]
    [result] = write(iter(batches))
    found = result.to_pylist()
    assert [(each["folder"], each["rows"]) for each in found] == [("city=a/", 3), ("city=b/", 1)]
    for each in found:
        place = f"staged/{each['folder']}{each['name']}"
        assert store.info(place).size == each["size"]
    assert pq.read_table(store.source(f"staged/{found[0]['folder']}{found[0]['name']}"))["id"].to_pylist() == [0, 1, 2]
    assert list(write(iter([]))) == []


def test_a_plan_is_read_with_the_version_that_a_conditional_write_needs() -> None:
    store = Store()
    store.replace("plan.json", json.dumps({"batch": 1}).encode())
    found = store.read("plan.json")
    assert found is not None
    assert found.version == obstore.head(store._store, "plan.json")["e_tag"]
    store.replace_version("plan.json", b"{}", found.version)
    with pytest.raises(TableBusy):
        store.replace_version("plan.json", b"{}", found.version)


def test_an_unreachable_store_is_a_one_line_error() -> None:
    settings = StorageSettings(endpoint="http://127.0.0.1:1", allow_http=True, access_key_id="k", secret_access_key="s")
    address = "s3://lake/orders"
    store = opened_store(address, settings, timedelta(seconds=5))
    files = ObjectFiles(address, settings, store)

    def write() -> None:
        with files.sink("a.parquet") as sink:
            sink.write(b"x")

    for request in (write, lambda: files.read("a"), files.listed, lambda: files.replace("a", b"")):
        with pytest.raises(StoreFailed, match=r"cannot (write|read|list) s3://lake/orders") as refused:
            request()
        assert "\n" not in str(refused.value)
