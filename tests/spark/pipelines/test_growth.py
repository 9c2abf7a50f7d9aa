"""Tables with many commits: the cost and leftovers of a commit do not grow."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from bench.spark_growth import commit_of, known_ids
from tests.spark.pipelines.conftest import a_sink

from ottla.spark.pipelines.tables.delta_log import files_to_remove

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
COMMITS = 60


def grown(folder: Path, kind: Any, **options: Any) -> Any:
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[kind])
    sink = a_sink(kind, path=str(folder / "table"), table="shop.grown", **options)
    commit = commit_of(sink)
    for number in range(COMMITS):
        commit(number)
    return sink


def iceberg(sink: Any) -> Any:
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog("ottla", type="sql", uri=f"sqlite:///{Path(sink.path) / 'catalog.db'}")
    return catalog.load_table(sink.table)


def test_an_iceberg_table_keeps_few_snapshots_and_manifests_and_every_row(tmp_path: Path) -> None:
    sink = grown(tmp_path, "iceberg")
    table = iceberg(sink)

    assert len(table.metadata.snapshots) == 10
    assert len(table.current_snapshot().manifests(table.io)) <= 20
    assert len(table.metadata.metadata_log) <= 6
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(COMMITS * 10))


def test_an_iceberg_table_that_rows_are_merged_into_keeps_few_manifests(tmp_path: Path) -> None:
    sink = grown(tmp_path, "iceberg", key=("id",), mode="update")
    table = iceberg(sink)

    manifests = table.current_snapshot().manifests(table.io)
    assert len(manifests) <= 20
    # Those of this snapshot alone may say which files it removed.
    dead = [each for each in manifests if not each.has_added_files() and not each.has_existing_files()]
    assert {each.added_snapshot_id for each in dead} <= {table.current_snapshot().snapshot_id}
    expected: dict[int, bool] = {}
    for number in range(COMMITS):
        expected |= {each: bool(number) and each % 10 == 0 for each in known_ids(number)}
    found = sorted(table.scan().to_arrow()["id"].to_pylist())
    assert found == sorted(each for each, is_deleted in expected.items() if not is_deleted)


def test_files_of_expired_iceberg_snapshots_are_removed_and_all_rows_stay_readable(tmp_path: Path) -> None:
    sink = grown(tmp_path, "iceberg", keep_versions=3)
    metadata = Path(sink.path) / "shop" / "grown" / "metadata"
    before = len(list(metadata.iterdir()))

    sink.open_table().remove_orphans(-1)

    table = iceberg(sink)
    used = {manifest.manifest_path for each in table.metadata.snapshots for manifest in each.manifests(table.io)}
    assert len(table.metadata.snapshots) == 3
    assert len(list(metadata.glob("*.avro"))) == len(used) + 3
    assert len(list(metadata.iterdir())) < before / 2
    assert len(table.scan().to_arrow()) == COMMITS * 10


def test_a_delta_table_has_a_short_log_and_every_row(tmp_path: Path) -> None:
    import deltalake

    sink = grown(tmp_path, "delta")

    log = [file.name for file in (tmp_path / "table" / "_delta_log").iterdir()]
    assert len([name for name in log if name.endswith(".json")]) <= 30
    table = deltalake.DeltaTable(sink.path)
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == list(range(COMMITS * 10))
    assert table.transaction_version("growth-growth") == COMMITS - 1
    # The last ten versions can still be read.
    older = deltalake.DeltaTable(sink.path, version=table.version() - 10)
    assert len(older.to_pyarrow_table()) == (COMMITS - 10) * 10


def test_merges_read_the_log_of_a_delta_table_once_in_ten_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import deltalake

    opened: list[Any] = []
    read = deltalake.DeltaTable.__init__

    def counted(self: Any, *given: Any, **options: Any) -> None:
        opened.append(self)
        read(self, *given, **options)

    monkeypatch.setattr(deltalake.DeltaTable, "__init__", counted)

    sink = grown(tmp_path, "delta", key=("id",), mode="update")

    assert len(opened) <= COMMITS / 10 + 2
    expected: dict[int, bool] = {}
    for number in range(COMMITS):
        expected |= {each: bool(number) and each % 10 == 0 for each in known_ids(number)}
    found = sorted(deltalake.DeltaTable(sink.path).to_pyarrow_table()["id"].to_pylist())
    assert found == sorted(each for each, is_deleted in expected.items() if not is_deleted)


def test_the_log_of_a_foreign_delta_table_is_not_truncated(tmp_path: Path) -> None:
    import deltalake
    import pyarrow as pa

    deltalake.DeltaTable.create(str(tmp_path / "table"), pa.schema([("id", pa.int64()), ("city", pa.string())]))
    grown(tmp_path, "delta")
    log = [file.name for file in (tmp_path / "table" / "_delta_log").iterdir()]
    assert len([name for name in log if name.endswith(".json")]) > COMMITS


def test_versions_are_read_from_the_last_checkpoint_before_them() -> None:
    log = [f"{number:020d}.json" for number in range(41)] + [
        f"{number:020d}.checkpoint.parquet" for number in (10, 20, 30)
    ]
    removed = files_to_remove([*log, "_last_checkpoint"], version=40, keep_versions=15)
    assert set(log) - set(removed) == {
        *(f"{number:020d}.json" for number in range(20, 41)),
        f"{20:020d}.checkpoint.parquet",
        f"{30:020d}.checkpoint.parquet",
    }
    assert files_to_remove(log[:41], version=40, keep_versions=1) == []


def test_a_database_keeps_one_number_for_each_query(tmp_path: Path) -> None:
    sink = a_sink("sqlite", path=str(tmp_path / "shop.db"), table="grown")
    commit = commit_of(sink)
    for number in range(5):
        commit(number)
        commit(number)
    database = sqlite3.connect(sink.path)
    assert database.execute("SELECT count(*) FROM grown").fetchone() == (50,)
    assert database.execute("SELECT count(*) FROM ottla_batches").fetchone() == (1,)
    database.close()
