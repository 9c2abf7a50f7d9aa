"""Upserts and deletes by key: every sink with a key ends with the contents of a plain dictionary."""

import json
import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.spark.conftest import Cluster
from tests.spark.pipelines.conftest import Pipelines, a_sink
from tests.spark.pipelines.test_evolution import BEFORE, CASES, FIRST, OLD, no_refusals, rows_of, sink_of
from tests.spark.pipelines.test_sinks import forget_last_commit

from ottla import Producer
from ottla.core.errors import ConfigError
from ottla.spark.pipelines.changes.rules import DELETE
from ottla.spark.pipelines.sinks.batch import MicroBatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.spark.pipelines.sinks.batch import RefusedRow

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
KINDS = ("delta", "iceberg", "postgresql", "sqlite")
COLUMNS = "id bigint, part string, version int, note string"
ORIGIN = f"{COLUMNS}, {DELETE} boolean, _topic string, _partition int, _offset bigint"
Row = tuple[Any, ...]


class Merged:
    """A sink with a key, micro-batch by micro-batch."""

    def __init__(self, spark: "SparkSession", sink: Any) -> None:
        self._spark = spark
        self.sink = sink
        self.refused: list[RefusedRow] = []
        self._number = 0

    def write(self, rows: Sequence[Row], schema: str = ORIGIN, number: int | None = None) -> int:
        frame = self._spark.createDataFrame(list(rows), schema)
        query = getattr(self.sink, "table", "merged")
        batch = MicroBatch(query, self._number if number is None else number, self.refused.extend)
        self._number = batch.number + 1
        return self.sink.write(frame, batch)

    def rows(self) -> list[dict[str, Any]]:
        if self.sink.kind != "sqlite":
            return rows_of(self.sink)
        with closing(sqlite3.connect(self.sink.path)) as database:
            database.row_factory = sqlite3.Row
            return [dict(row) for row in database.execute(f"SELECT * FROM {self.sink.table} ORDER BY id")]  # noqa: S608 - our own


@pytest.fixture
def merged(spark: "SparkSession", tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Merged]:
    def make(kind: Any, **options: Any) -> Merged:
        url = request.getfixturevalue("postgresql") if kind == "postgresql" else ""
        name = f"merged_{abs(hash(tmp_path)) % 10**8}"
        place = {"delta": "table", "iceberg": "warehouse", "sqlite": "shop.db"}.get(kind, "")
        table = {"iceberg": "shop.orders"}.get(kind, name)
        given = {"key": ("id",), "mode": "update", "dead_letters": "dead", **options}
        return Merged(spark, a_sink(kind, path=str(tmp_path / place), table=table, url=url, **given))

    return make


def change(key: int | None, version: int, offset: int, *, is_delete: bool = False, partition: int = 0) -> Row:
    return (key, f"p{version % 3}", version, f"note {version}", is_delete, "orders", partition, offset)


def as_row(key: int, version: int) -> dict[str, Any]:
    return {"id": key, "part": f"p{version % 3}", "version": version, "note": f"note {version}"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_change_of_each_key_wins_by_offset_whatever_the_order_of_rows(
    merged: Callable[..., Merged], kind: str
) -> None:
    table = merged(kind)

    table.write(
        [change(1, 2, 20), change(1, 1, 10), change(2, 1, 11), change(3, 1, 12), change(4, 1, 13, is_delete=True)]
    )
    assert table.rows() == [as_row(1, 2), as_row(2, 1), as_row(3, 1)]

    table.write(
        [
            change(2, 9, 31, is_delete=True),
            change(2, 8, 30),
            change(3, 4, 33),
            change(3, 3, 32, is_delete=True),
            change(5, 1, 34),
            change(6, 1, 35, is_delete=True),
        ]
    )
    assert table.rows() == [as_row(1, 2), as_row(3, 4), as_row(5, 1)]

    # The same micro-batch again, as after a driver that was killed: nothing changes.
    assert table.write([change(1, 99, 99)], number=1) == 0
    assert table.rows() == [as_row(1, 2), as_row(3, 4), as_row(5, 1)]


@pytest.mark.parametrize("kind", KINDS)
def test_random_changes_leave_what_a_dictionary_has_also_if_rows_move_between_partitions_of_the_table(
    merged: Callable[..., Merged], kind: str
) -> None:
    table = merged(kind, **({"partition_by": ("part",), "keep_versions": 3} if kind in ("delta", "iceberg") else {}))
    chance = random.Random(17)
    model: dict[int, int] = {}
    offset = 0
    for _ in range(6):
        rows = []
        for _ in range(40):
            key, version, is_delete = chance.randrange(30), chance.randrange(1000), chance.random() < 0.3
            offset += 1
            rows.append(change(key, version, offset, is_delete=is_delete))
            model.pop(key, None)
            if not is_delete:
                model[key] = version
        chance.shuffle(rows)
        table.write(rows)
        assert table.rows() == [as_row(key, model[key]) for key in sorted(model)]


@pytest.mark.parametrize("kind", KINDS)
def test_with_an_order_an_older_row_neither_replaces_nor_deletes_a_newer_one(
    merged: Callable[..., Merged], kind: str
) -> None:
    table = merged(kind, order_by="version")
    table.write([change(1, 5, 1), change(2, 5, 2), change(3, 5, 3), change(1, 4, 9, partition=1)])

    table.write(
        [
            change(1, 3, 4),
            change(2, 4, 5, is_delete=True),
            change(3, 5, 6, is_delete=True),
            change(4, 1, 7),
            change(4, 2, 6, partition=1),
        ]
    )

    assert table.rows() == [as_row(1, 5), as_row(2, 5), as_row(4, 2)]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_a_key_are_refused_one_by_one_and_the_others_are_merged(
    merged: Callable[..., Merged], kind: str
) -> None:
    table = merged(kind)
    table.write([change(None, 1, 1), change(1, 1, 2), change(None, 2, 3)])
    table.write([change(None, 3, 4), change(1, 2, 5)])

    assert table.rows() == [as_row(1, 2)]
    assert sorted((each.row["version"], each.reason) for each in table.refused) == [
        (version, "key column id is null") for version in (1, 2, 3)
    ]
    assert DELETE not in table.refused[0].row


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_merge_follows_a_change_of_columns_as_an_append_does(
    spark: "SparkSession", tmp_path: Path, kind: str, case: str
) -> None:
    from ottla.spark.pipelines.evolution.conforming import frame_columns
    from ottla.spark.pipelines.evolution.deciding import planned_evolution

    policy, schema, values, reasons, expected = CASES[case]
    sink = msgspec.structs.replace(sink_of(kind, tmp_path, "", policy, case), key=("id",), mode="update")
    third = (3, *FIRST[1:])
    sink.write(spark.createDataFrame([FIRST, third], BEFORE), MicroBatch("evolving", 0, no_refusals))
    changed = spark.createDataFrame([values], schema)

    if reasons[kind]:
        with pytest.raises(ConfigError, match="give the sink another name and place"):
            planned_evolution(sink, frame_columns(changed), None)
        assert rows_of(sink) == [OLD, {**OLD, "id": 3}]
        return
    assert planned_evolution(sink, frame_columns(changed), None) is not None
    for _ in range(2):  # the second time as a repeated micro-batch
        sink.write(changed, MicroBatch("evolving", 1, no_refusals))
    # And once more for a row that was written with the old columns.
    at = [field.name for field in changed.schema.fields].index("id")
    third_version = spark.createDataFrame([(*values[:at], 3, *values[at + 1 :])], schema)
    sink.write(third_version, MicroBatch("evolving", 2, no_refusals))

    found = rows_of(sink)
    assert [row["id"] for row in found] == [1, 2, 3]
    assert {name: value for name, value in found[0].items() if value is not None and name != "place"} == {
        name: value for name, value in OLD.items() if name != "place"
    }
    assert found[1] == expected
    assert found[2] == {**expected, "id": 3}


FILE = """
[source.orders]
topics = "{topic}"
schema = "id bigint, city string, state string"
nulls = "delete"
key = "id"
dead_letters = "none"
[step.named]
sql = "SELECT {columns} FROM orders"
[sink.delta]
kind = "delta"
path = "delta"
{key}
{more}
[sink.lite]
kind = "sqlite"
path = "shop.db"
table = "orders"
key = "id"
delete_when = "_deleted OR state = 'closed'"
[sink.copy]
kind = "topic"
topic = "{topic}.copy"
key = "id"
"""


def test_tombstones_and_a_condition_delete_rows_and_a_repeated_micro_batch_changes_nothing(
    pipelines: Pipelines, cluster: Cluster, read: Callable[[str], list[Any]], tmp_path: Path
) -> None:
    import deltalake

    topic = cluster.topic(partitions=2)
    given = {"topic": topic, "columns": "*", "key": 'key = "id"', "more": ""}
    records = [(1, "Prag", "new"), (2, "Wien", "new"), (3, "Brno", "new"), (3, "Brno", "closed"), (2, None, None)]

    def write(some: Sequence[tuple[int, str | None, str | None]]) -> None:
        with Producer(cluster.servers) as producer:
            for key, city, state in some:
                value = None if city is None else json.dumps({"id": key, "city": city, "state": state}).encode()
                # Both forms of a key.
                producer.send(topic, value, key=b"%d" % key if key % 2 else b'{"id": %d}' % key, partition=key % 2)

    write(records)
    assert pipelines.run(FILE.format(**given)).state == "finished"
    write([(1, None, None), (4, "Linz", "new")])
    assert pipelines.run(FILE.format(**given)).state == "finished"
    forget_last_commit(tmp_path, "delta")
    assert pipelines.run(FILE.format(**given)).state == "finished"

    rows = deltalake.DeltaTable(str(tmp_path / "delta")).to_pyarrow_table().to_pylist()
    assert sorted((row["id"], row["state"]) for row in rows) == [(3, "closed"), (4, "new")]
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        assert database.execute("SELECT id FROM orders").fetchall() == [(4,)]
    copies = read(f"{topic}.copy")
    assert [record.value for record in copies if record.key == b"1"][1:] == [None]

    for change, said in (
        ({"columns": "id, city"}, "the steps drop the column _deleted that says so"),
        ({"key": ""}, "may be deletes .column _deleted., and the sink has no key"),
        ({"key": 'key = "city"'}, "the key changed from id to city"),
        ({"key": 'key = "idd"'}, "key: there is no column idd; did you mean id"),
        ({"more": 'delete_when = "citty IS NULL"'}, "delete_when: .*citty"),
        ({"more": 'delete_when = "city"'}, "delete_when: 'city' is a string, and must be boolean"),
    ):
        with pytest.raises(ConfigError, match=said):
            pipelines.run(FILE.format(**{**given, **change}))
