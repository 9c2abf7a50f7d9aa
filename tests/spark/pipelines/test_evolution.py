"""Schema evolution of every kind of sink: supported and refused changes."""

import sqlite3
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.conftest import Cluster
from tests.spark.pipelines.conftest import Pipelines, a_sink

from ottla.columns.evolution import (
    AddColumn,
    Evolution,
    EvolutionPolicy,
    TableColumns,
    WidenColumn,
    decide,
)
from ottla.columns.types import Array, Struct, as_json, from_spark, struct_of
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.changes.rules import DELETE
from ottla.spark.pipelines.sinks.batch import MicroBatch
from ottla.spark.pipelines.sinks.delta import DeltaSink
from ottla.spark.pipelines.sinks.iceberg import IcebergSink
from ottla.spark.pipelines.tables.changes import Changes
from ottla.spark.pipelines.tables.staging import BatchId

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
KINDS = ("parquet", "delta", "iceberg", "postgresql", "sqlite")
BEFORE = "id bigint, qty int, price decimal(10,2), city string, place struct<x:int>"
FIRST = (1, 2, Decimal("3.50"), "Prag", (4,))
OLD = {"id": 1, "qty": 2, "price": Decimal("3.50"), "city": "Prag", "place": {"x": 4}}
NEW = {"id": 2, "qty": 2, "price": Decimal("3.50"), "city": "Prag", "place": {"x": 4}}

GOES_ON = dict.fromkeys(KINDS, "")
REFUSED_TYPE = dict.fromkeys(KINDS, "this is not a safe widening")
NOT_WIDENED = dict.fromkeys(KINDS, 'needs evolution = "widen"')
CASES: dict[str, tuple[EvolutionPolicy, str, tuple[Any, ...], dict[str, str], dict[str, Any]]] = {
    "add a column": ("add", f"{BEFORE}, note string", (2, *FIRST[1:], "n"), GOES_ON, {**NEW, "note": "n"}),
    "add a column under strict": (
        "strict",
        f"{BEFORE}, note string",
        (2, *FIRST[1:], "n"),
        dict.fromkeys(KINDS, "adds no columns"),
        {},
    ),
    "widen": (
        "widen",
        BEFORE.replace("qty int", "qty bigint").replace("(10,2)", "(12,2)"),
        (2, 1 << 40, Decimal("1234567890.50"), "Prag", (4,)),
        GOES_ON,
        {**NEW, "qty": 1 << 40, "price": Decimal("1234567890.50")},
    ),
    "widen under add": ("add", BEFORE.replace("qty int", "qty bigint"), (2, *FIRST[1:]), NOT_WIDENED, {}),
    "narrow": ("add", BEFORE.replace("id bigint", "id int"), (2, *FIRST[1:]), GOES_ON, NEW),
    "another type": (
        "widen",
        BEFORE.replace("price decimal(10,2)", "price double"),
        (2, 2, 3.5, "Prag", (4,)),
        REFUSED_TYPE,
        {},
    ),
    "rename": (
        "widen",
        BEFORE.replace("city", "town"),
        (2, *FIRST[1:]),
        dict.fromkeys(KINDS, "a rename would split the column"),
        {},
    ),
    "drop a column": (
        "add",
        BEFORE.replace(" city string,", ""),
        (2, 2, Decimal("3.50"), (4,)),
        GOES_ON,
        {**NEW, "city": None},
    ),
    "reorder": (
        "strict",
        "place struct<x:int>, city string, price decimal(10,2), qty int, id bigint",
        ((4,), "Prag", Decimal("3.50"), 2, 2),
        GOES_ON,
        NEW,
    ),
    "add a nested field": (
        "add",
        BEFORE.replace("x:int", "y:string,x:int"),
        (2, *FIRST[1:4], ("why", 4)),
        GOES_ON,
        {**NEW, "place": {"x": 4, "y": "why"}},
    ),
    "change a nested type": (
        "widen",
        BEFORE.replace("x:int", "x:string"),
        (2, *FIRST[1:4], ("4",)),
        # Databases store nested values as JSON, which has no types to break.
        {**REFUSED_TYPE, "postgresql": "", "sqlite": ""},
        {**NEW, "place": {"x": "4"}},
    ),
}


def sink_of(kind: Any, folder: Path, url: str, policy: EvolutionPolicy, name: str) -> Any:
    place = {"parquet": "table", "delta": "table", "iceberg": "warehouse", "sqlite": "shop.db"}.get(kind, "")
    table = {"iceberg": "shop.orders"}.get(kind, name)
    return a_sink(kind, path=str(folder / place), table=table, url=url, evolution=policy)


def rows_of(sink: Any) -> list[dict[str, Any]]:
    """Rows read by the format's library, ordered by `id`, without nulls of missing columns."""
    if sink.kind == "parquet":
        import pyarrow.parquet as pq
        from pyarrow import concat_tables

        files = [pq.ParquetFile(file).read() for file in Path(sink.path).glob("*.parquet")]
        rows = concat_tables(files, promote_options="default").to_pylist()
    elif sink.kind == "delta":
        import deltalake

        rows = deltalake.DeltaTable(sink.path).to_pyarrow_table().to_pylist()
    elif sink.kind == "iceberg":
        from pyiceberg.catalog import load_catalog

        catalog = load_catalog("ottla", type="sql", uri=f"sqlite:///{Path(sink.path) / 'catalog.db'}")
        rows = catalog.load_table(sink.table).scan().to_arrow().to_pylist()
    else:
        rows = database_rows(sink)
    return sorted(rows, key=lambda row: int(row["id"]))


def database_rows(sink: Any) -> list[dict[str, Any]]:
    import json

    if sink.kind == "postgresql":
        import psycopg
        from psycopg.rows import dict_row

        with psycopg.connect(sink.url, row_factory=dict_row) as connection:
            return connection.execute(f'SELECT * FROM "{sink.table}"').fetchall()  # noqa: S608 - our own
    database = sqlite3.connect(sink.path)
    database.row_factory = sqlite3.Row
    rows = [dict(row) for row in database.execute(f'SELECT * FROM "{sink.table}"')]  # noqa: S608 - our own
    database.close()
    return [{**row, "price": Decimal(row["price"]), "place": row["place"] and json.loads(row["place"])} for row in rows]


def no_refusals(rows: Sequence[Any]) -> None:
    raise AssertionError(rows)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_sink_follows_a_change_of_columns_or_refuses_it_before_anything_is_written(
    spark: "SparkSession", tmp_path: Path, kind: str, case: str, request: pytest.FixtureRequest
) -> None:
    from ottla.spark.pipelines.evolution.conforming import frame_columns
    from ottla.spark.pipelines.evolution.deciding import planned_evolution

    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    url = request.getfixturevalue("postgresql") if kind == "postgresql" else ""
    policy, schema, values, reasons, expected = CASES[case]
    sink = sink_of(kind, tmp_path, url, policy, case)
    sink.write(spark.createDataFrame([FIRST], BEFORE), MicroBatch(case.replace(" ", "-"), 0, no_refusals))
    changed = spark.createDataFrame([values], schema)

    if reasons[kind]:
        with pytest.raises(ConfigError) as refused:
            planned_evolution(sink, frame_columns(changed), None)
        text = str(refused.value)
        assert reasons[kind] in text
        assert "column" in text
        assert "give the sink another name and place" in text
        assert rows_of(sink) == [OLD]
        return
    planned_evolution(sink, frame_columns(changed), None)
    for _ in range(2):  # the second time as a repeated micro-batch
        sink.write(changed, MicroBatch(case.replace(" ", "-"), 1, no_refusals))

    found = rows_of(sink)
    assert len(found) == 2
    without_nulls = {name: value for name, value in found[0].items() if value is not None}
    place = {name: value for name, value in without_nulls["place"].items() if value is not None}
    assert {**without_nulls, "place": place} == OLD
    assert found[1] == expected


FILE = """
[source.orders]
topics = "{topic}"
schema = "id bigint, price {price}{more}"
dead_letters = "none"
[sink.parquet]
kind = "parquet"
path = "parquet"
[sink.delta]
kind = "delta"
path = "delta"
[sink.iceberg]
kind = "iceberg"
path = "warehouse"
table = "shop.orders"
[sink.postgresql]
kind = "postgresql"
url = "{url}"
table = "evolving"
[sink.sqlite]
kind = "sqlite"
path = "shop.db"
table = "orders"
"""


def test_a_changed_type_is_refused_before_writing_and_an_added_column_is_visible_everywhere(
    pipelines: Pipelines, cluster: Cluster, send: Callable[..., None], tmp_path: Path, postgresql: str
) -> None:
    topic = cluster.topic()

    def run(price: str, more: str = "") -> list[str]:
        said: list[str] = []
        pipelines.run(FILE.format(topic=topic, url=postgresql, price=price, more=more), say=said.append)
        return said

    send(topic, [{"id": 1, "price": 1.5}])
    run("decimal(10,2)")
    send(topic, [{"id": 2, "price": 2.5, "note": "new"}])
    for price in ("double", "string"):
        with pytest.raises(ConfigError, match=rf"price +decimal\(10,2\) +{price} +<- decimal\(10,2\) cannot become"):
            run(price)
    said = run("decimal(10,2)", ", note string")

    for kind in KINDS:
        assert f"{kind}: adds column note string" in said
        sink = pipelines.load(FILE.format(topic=topic, url=postgresql, price="double", more="")).sinks[kind]
        if kind == "sqlite":
            database = sqlite3.connect(tmp_path / "shop.db")
            assert database.execute("SELECT id, note FROM orders ORDER BY id").fetchall() == [(1, None), (2, "new")]
            database.close()
        else:
            assert [(row["id"], row.get("note")) for row in rows_of(sink)] == [(1, None), (2, "new")], kind


def table(**columns: Any) -> TableColumns:
    return TableColumns(struct_of(columns.items()))


def test_changes_are_found_by_name_at_every_depth() -> None:
    inner = struct_of([("x", "int")])
    have = table(id="int", items=Array(inner), gone="string")
    query = struct_of([("items", Array(struct_of([("y", "string"), ("x", "bigint")]))), ("id", "bigint")])

    found = decide(have, query, "widen", IcebergSink.abilities, ())

    assert set(found.changes) == {
        WidenColumn(("id",), "int", "bigint"),
        WidenColumn(("items", "element", "x"), "int", "bigint"),
        AddColumn(("items", "element", "y"), "string"),
    }
    assert found.columns.get("items") == Array(struct_of([("x", "bigint"), ("y", "string")]))
    assert found.columns.get("gone") == "string"
    assert found.notes == ("no longer writes column gone: it is null in new rows",)


def test_a_partitioned_delta_table_is_rewritten_with_wider_types_once(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    import pyarrow as pa

    sink = a_sink("delta", path=str(tmp_path / "table"), partition_by=("city",), key=("id",), mode="update")
    narrow, wide = struct_of([("id", "int"), ("city", "string")]), struct_of([("id", "bigint"), ("city", "string")])
    first = sink.open_table()
    first.commit([], BatchId("query", 0), Evolution(narrow))
    rows = {"id": pa.array([1, 2], pa.int32()), "city": ["Prag", "Wien"], DELETE: [False, False]}
    first.merge(Changes(pa.table(rows)), BatchId("query", 1), Evolution(narrow), sink.changes)
    widened = Evolution(wide, (WidenColumn(("id",), "int", "bigint"),))
    rows = {"id": pa.array([1, 1 << 40]), "city": ["Bern", "Bern"], DELETE: [False, False]}
    for _ in range(2):
        table = sink.open_table()
        if not table.has(BatchId("query", 2)):
            table.merge(Changes(pa.table(rows)), BatchId("query", 2), widened, sink.changes)

    found = deltalake.DeltaTable(sink.path)
    assert (found.version(), found.metadata().partition_columns) == (4, ["city"])
    assert "ottla.createdByPipeline" in found.metadata().configuration
    assert sorted((row["id"], row["city"]) for row in found.to_pyarrow_table().to_pylist()) == [
        (1, "Bern"),
        (2, "Wien"),
        (1 << 40, "Bern"),
    ]


def test_a_column_dropped_in_an_earlier_run_does_not_make_a_new_one_a_rename() -> None:
    have = table(id="int", city="string")
    query = struct_of([("id", "int"), ("town", "string")])
    assert decide(have, query, "add", DeltaSink.abilities, ("id", "city")).misfits
    assert not decide(have, query, "add", DeltaSink.abilities, ("id",)).misfits


def test_names_that_differ_only_in_case_and_columns_that_rows_need_are_refused() -> None:
    upper = decide(table(id="int"), struct_of([("id", "int"), ("ID", "int")]), "add", DeltaSink.abilities, ())
    assert [each.column for each in upper.misfits] == ["ID"]
    have = TableColumns(struct_of([("id", "int"), ("day", "date")]), frozenset(["day"]))
    gone = decide(have, struct_of([("id", "int")]), "add", DeltaSink.abilities, ())
    assert [each.column for each in gone.misfits] == ["day"]


def test_a_schema_survives_its_json_form() -> None:
    columns = struct_of([("id", "bigint"), ("tags", Array("string")), ("at", struct_of([("x", "decimal(10,2)")]))])
    assert from_spark(as_json(columns)) == columns
    assert isinstance(columns, Struct)
