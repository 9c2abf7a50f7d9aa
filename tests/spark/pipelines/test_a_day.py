"""A day in the life of a pipeline, by the commands of its documentation, each in a separate process."""

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from interop.spark_standalone import ENVIRONMENT, free_port, standalone_cluster
from tests.spark.conftest import QUICK_JVM, why_there_is_no_spark
from tests.spark.pipelines.test_faults import wait_until

from ottla import Producer
from ottla.testing import EphemeralBroker

pytestmark = [
    pytest.mark.timeout(3600),
    pytest.mark.skipif("SPARK_KILLS" not in os.environ, reason="long; `make pipeline-test` runs it"),
]
COMMAND_S = 900
LOCAL = ("--master", "local[2]")
CITIES = ("Prag", "Wien", "Bern")
SETTINGS = f"""
[spark]
"spark.driver.extraJavaOptions" = "{QUICK_JVM}"
"spark.executor.memory" = "512m"
"spark.driver.host" = "127.0.0.1"
"""
CUSTOMERS = """
[source.customers]
schema = "id bigint, name string"
nulls = "delete"
key = "id"
[sink.customers]
kind = "delta"
path = "customers"
from = "customers"
key = "id"
"""
TOTALS = """
[step.totals]
sql = "SELECT city, count(*) AS orders FROM orders{where} GROUP BY {by}"
[sink.{sink}]
kind = "sqlite"
path = "shop.db"
table = "{sink}"
key = "city"
from = "totals"
mode = "update"
"""


class Day:
    """A folder, a broker, and the commands of its user."""

    def __init__(self, folder: Path, servers: str) -> None:
        self.folder = folder
        self.servers = servers
        self.file = folder / "orders.toml"

    def ottla(self, *arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "ottla", "pipeline", *arguments],
            cwd=self.folder,
            env={**ENVIRONMENT, "OTTLA_BROKER": self.servers},
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        said = done.stdout + done.stderr
        assert done.returncode == code, said[-6000:]
        return said

    def run(self, *master: str, file: str = "orders.toml", code: int = 0) -> str:
        return self.ottla("run", file, "--available-now", *(master or LOCAL), code=code)

    def send(self, topic: str, values: dict[str, Any] | list[Any]) -> None:
        """A dictionary is sent by key; None is a tombstone."""
        given = values.items() if isinstance(values, dict) else ((None, value) for value in values)
        with Producer(self.servers) as producer:
            for key, value in given:
                data = None if value is None else json.dumps(value).encode()
                producer.send(topic, data, key=None if key is None else key.encode())

    def edit(self, pattern: str, replacement: str) -> None:
        text, count = re.subn(pattern, lambda _: replacement, self.file.read_text(), flags=re.DOTALL)
        assert count == 1, pattern
        self.file.write_text(text)

    def append(self, text: str) -> None:
        self.file.write_text(self.file.read_text() + text)

    def delta(self, name: str) -> list[dict[str, Any]]:
        import deltalake

        rows = deltalake.DeltaTable(str(self.folder / name)).to_pyarrow_table().to_pylist()
        return sorted(rows, key=lambda row: int(row["id"]))

    def ids(self) -> list[int]:
        return [row["id"] for row in self.delta("orders")]

    def customers(self) -> dict[int, str]:
        return {row["id"]: row["name"] for row in self.delta("customers")}

    def sqlite(self, table: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.folder / "shop.db")) as database:
            return sorted(database.execute(f"SELECT * FROM {table}"))  # noqa: S608 - our own


def orders(numbers: range, **more: Any) -> list[dict[str, Any]]:
    return [{"id": number, "city": CITIES[number % 3], "price": 9.5, **more} for number in numbers]


@pytest.fixture
def day(tmp_path: Path) -> Iterator[Day]:
    if reason := why_there_is_no_spark():
        pytest.skip(reason)
    pytest.importorskip("deltalake")
    with EphemeralBroker() as broker:
        for topic in ("orders", "customers"):
            broker.create_topic(topic, partitions=2)
        yield Day(tmp_path, broker.bootstrap_servers)


def test_a_day_in_the_life_of_a_pipeline(day: Day) -> None:
    it_begins(day)
    records_get_a_field(day)
    bad_data_is_fixed_and_sent_again(day)
    a_range_is_filled_again(day)
    rows_are_merged(day)
    a_changed_pipeline_goes_on_or_is_refused(day)
    with standalone_cluster(day.folder, ENVIRONMENT) as (master, _):
        it_goes_on(day, range(300, 350), "--master", master)
        with connect_server(master, day.folder) as connect:
            it_goes_on(day, range(400, 450), "--master", connect)
    assert "finished" in day.ottla("status")


def it_begins(day: Day) -> None:
    day.send("orders", orders(range(100)))
    assert "from 100 records of orders" in day.ottla("init", "orders", "--sink", "delta")
    day.append(SETTINGS)
    day.ottla("test", "orders.toml")
    assert "orders finished" in day.run()
    assert day.ids() == list(range(100))


def records_get_a_field(day: Day) -> None:
    day.send("orders", orders(range(100, 150), note="gift"))
    day.edit(r"schema = '''(.*?)'''", "schema = '''id bigint, city string, price double, note string'''")
    day.edit(r"SELECT .*?, _timestamp", "SELECT id, city, price, note, _timestamp")
    assert "adds column note string" in day.ottla("check", "orders.toml", *LOCAL)
    assert "delta: adds column note string" in day.run()
    assert [row["note"] for row in day.delta("orders")] == [None] * 100 + ["gift"] * 50
    # A type that does not fit the table ends with both schemas, and writes nothing.
    day.edit("price double", "price string")
    assert "cast in a step" in day.run(code=2)


def bad_data_is_fixed_and_sent_again(day: Day) -> None:
    day.edit("price string", "price double")
    comma = [{"id": number, "city": "Prag", "price": "9,50"} for number in range(150, 160)]
    day.send("orders", [*comma, *orders(range(160, 170))])
    assert "orders-dead-letters: 10 sent to topic orders.dead-letters" in day.run()
    assert day.ids() == [*range(150), *range(160, 170)]
    day.edit("price double", "price string")
    day.edit(r"SELECT id, city, price,", "SELECT id, city, CAST(replace(price, ',', '.') AS double) AS price,")
    assert "5 records sent back" in day.ottla("redrive", "orders.toml", "--where", "value ->> '$.id' < 155")
    assert "5 records sent back" in day.ottla("redrive", "orders.toml")
    assert "0 records sent back" in day.ottla("redrive", "orders.toml")
    day.run()
    assert day.ids() == list(range(170))
    assert {row["price"] for row in day.delta("orders")} == {9.5}


def a_range_is_filled_again(day: Day) -> None:
    """Into a table that was lost."""
    day.edit(r'path = "orders"', 'path = "again"')
    now = datetime.now(UTC)
    span = [(now + timedelta(hours=hours)).isoformat(timespec="seconds") for hours in (-1, 1)]
    for _ in range(2):  # the second time it changes nothing
        day.ottla("backfill", "orders.toml", "--from", span[0], "--to", span[1], *LOCAL)
    # The records that were sent back are in the topic twice, first as they were: both fit by now.
    assert [row["id"] for row in day.delta("again")] == sorted([*range(170), *range(150, 160)])
    day.edit(r'path = "again"', 'path = "orders"')


def rows_are_merged(day: Day) -> None:
    (day.folder / "customers.toml").write_text(f'broker = "{day.servers}"\n{CUSTOMERS}{SETTINGS}')
    day.send("customers", {str(number): {"id": number, "name": "old"} for number in range(10)})
    day.run(file="customers.toml")
    changes: dict[str, Any] = {str(number): {"id": number, "name": "new"} for number in range(5, 12)}
    day.send("customers", {**changes, "3": None, "10": None})
    day.run(file="customers.toml")
    assert day.customers() == {0: "old", 1: "old", 2: "old", 4: "old", **dict.fromkeys([5, 6, 7, 8, 9, 11], "new")}
    day.ottla("compact", "customers.toml")
    assert len(day.customers()) == 10


def a_changed_pipeline_goes_on_or_is_refused(day: Day) -> None:
    def count() -> int:
        return sum(orders for _, orders in day.sqlite("per_city"))

    before = day.file.read_text()
    day.append(TOTALS.format(sink="per_city", by="city", where=""))
    day.run()
    counted = count()
    assert counted >= len(day.ids())
    day.file.write_text(before + TOTALS.format(sink="per_city", by="city, note", where=""))
    assert "[sink.per_city]: the checkpoint is incompatible" in day.run(code=2)
    day.file.write_text(before + TOTALS.format(sink="per_city", by="city", where=" WHERE id >= 100"))
    it_goes_on(day, range(200, 210))
    assert count() == counted + 10


def it_goes_on(day: Day, numbers: range, *master: str) -> None:
    before = day.ids()
    day.send("orders", orders(numbers))
    assert "orders finished" in day.run(*master)
    assert day.ids() == [*before, *numbers]


@contextmanager
def connect_server(master: str, folder: Path) -> Iterator[str]:
    pytest.importorskip("grpc", reason="pyspark[connect] is not installed")
    import pyspark

    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.executor.memory": "512m",
        "spark.driver.host": "127.0.0.1",
    }
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = [submit, "--class", server, "--master", master, *options, "spark-internal"]
    with (
        (folder / "connect.log").open("wb") as log,
        subprocess.Popen(
            command, start_new_session=True, cwd=folder, env=ENVIRONMENT, stdout=log, stderr=log
        ) as process,
    ):
        try:
            wait_until(lambda: process.poll() is not None or answers(int(port)))
            assert process.poll() is None, (folder / "connect.log").read_text()[-4000:]
            yield f"sc://127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
