"""`ottla pipeline` commands that do not need Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from click.testing import CliRunner

import ottla
from ottla.cli.connecting import Reach
from ottla.cli.main import program
from ottla.cli.pipelines.files import kafka_settings
from ottla.cli.profiles import Profile
from ottla.core.errors import ConfigError
from ottla.core.pipeline_status import PIPELINES_TOPIC, PipelineStatus, QueryStatus
from ottla.spark import link
from ottla.spark.kafka_settings import client_options
from ottla.spark.pipelines.state_folder import StateFolder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE = '[source.orders]\nschema = "id bigint"\n[sink.table]\nkind = "parquet"\npath = "table"\n'


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with ottla.Broker() as running:
        yield running.bootstrap_servers
        # It is shared by the whole process, and would keep looking for this broker.
        while link._links:
            link._links.popitem()[1].close()


@pytest.fixture
def call(broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, at: str | None = None) -> tuple[int, str]:
        done = CliRunner().invoke(
            program, ["pipeline", *arguments], prog_name="ottla", env={"OTTLA_BROKER": at or broker}
        )
        return done.exit_code, done.output

    return run


def test_init_writes_a_valid_pipeline_for_a_topic(call: Any, broker: str, tmp_path: Path) -> None:
    with ottla.Producer(broker) as producer:
        for number in range(3):
            producer.send("shop-orders", json.dumps({"id": number, "at": "2026-01-01T00:00:00Z"}).encode())

    code, said = call("init", "shop-orders")
    assert (code, said.splitlines()[0]) == (
        0,
        "wrote shop-orders.toml and shop-orders.tests.toml from 3 records of shop-orders. Next:",
    )
    assert '{"id": 0, "at": "2026-01-01T00:00:00Z"}' in (tmp_path / "shop-orders.tests.toml").read_text()
    assert "schema = '''id bigint, at timestamp'''" in (tmp_path / "shop-orders.toml").read_text()
    code, said = call("check", "shop-orders.toml", "--no-spark")
    assert code == 0
    assert f"  sink parquet: rows of rows to parquet {tmp_path}/shop_orders, append" in said

    assert call("init", "shop-orders") == (2, "ottla: shop-orders.toml exists; choose another name with --file\n")
    assert call("init", "nothing") == (2, "ottla: there is no topic nothing\n")


def test_errors_have_distinct_exit_codes(call: Any, tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text(FILE.replace("kind", "knd"))
    code, said = call("check", "wrong.toml", "--no-spark")
    assert code == 2
    assert said.splitlines() == [
        "ottla: wrong.toml, line 3: [sink.table]: needs kind",
        "wrong.toml, line 4: [sink.table] knd: no such key; did you mean kind?",
    ]
    (tmp_path / "right.toml").write_text(FILE)
    assert call("stop", "right.toml") == (1, "ottla: right is not running here\n")
    assert call("compact", "right.toml") == (0, "table: 0 small files became 0, 0 orphans removed\n")
    assert call("compact", "right.toml", "--orphan-age", "old")[0] == 2
    assert "has no table other" in call("compact", "right.toml", "--sink", "other")[1]
    assert "--every: 'often' is not a valid duration" in call("run", "right.toml", "--every", "often")[1]
    assert "'soon' is not a valid time" in call("backfill", "right.toml", "--from", "soon")[1]


def test_a_folder_whose_files_a_running_pipeline_replaces_is_not_compacted(call: Any, tmp_path: Path) -> None:
    (tmp_path / "grows.toml").write_text(FILE)
    (tmp_path / "merges.toml").write_text(f"{FILE}compact_every = 10\n")
    for name, refused in (("grows", ""), ("merges", "ottla: [sink.table]: merges is running and replaces files")):
        with StateFolder(tmp_path / f"{name}.state").held():
            code, said = call("compact", f"{name}.toml")
        assert (code, said.startswith(refused)) == (1 if refused else 0, True)
    assert call("compact", "merges.toml")[0] == 0


def test_the_status_of_pipelines_is_a_table_or_json(call: Any, broker: str) -> None:
    query = QueryStatus(name="table", sink="parquet x", batch=2, rows=7, rows_per_second=3.5, lag=1, watermark="w")
    status = PipelineStatus(name="shop", state="failed", started_ms=5, error="the disk is full", queries=(query,))
    with ottla.Producer(broker) as producer:
        producer.send(PIPELINES_TOPIC, b"{", key=b"other")
        producer.send(PIPELINES_TOPIC, None, key=b"gone")
        producer.send(PIPELINES_TOPIC, msgspec.json.encode(status), key=b"shop", timestamp_ms=5)

    code, said = call("status")
    assert code == 1
    heading, row, reason = said.splitlines()
    assert heading.split()[:3] == ["PIPELINE", "STATE", "SEEN"]
    assert row.split()[:2] == ["shop", "failed"]
    assert reason == "shop: the disk is full"
    [told] = json.loads(call("status", "shop", "-o", "json")[1])
    assert (told["state"], told["queries"][0]["lag"]) == ("failed", 1)
    assert "no pipeline named shp is known to" in call("status", "shp")[1]


def test_connection_options_are_translated_for_the_spark_connector() -> None:
    profile = Profile(servers="a:1", tls=True, sasl="SCRAM-SHA-512", user="ann", password='a "b" \\')
    settings = kafka_settings(Reach(profile))

    security = client_options(settings)["security"]
    assert security is not None
    assert (security.tls, security.mechanism, security.username, security.password) == (
        True,
        "SCRAM-SHA-512",
        "ann",
        'a "b" \\',
    )
    assert kafka_settings(Reach(Profile(servers="a:1"))) == {}
    with pytest.raises(ConfigError, match="put the key into the file of --cert-file"):
        kafka_settings(Reach(Profile(servers="a:1", cert_file="c.pem", key_file="k.pem")))
