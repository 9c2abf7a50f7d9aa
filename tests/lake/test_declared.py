"""Tables that topics declare by their configs, and the plan of the process that writes them: rules."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.configs.layers import BrokerConfigs
from ottla.broker.configs.topic_config import conflict, usable
from ottla.cli.lake.plan import writer_plan
from ottla.cli.lake_config import LakeConfig
from ottla.cli.workers.plan import Logging
from ottla.columns.partitioning import parse_partitioning
from ottla.core.errors import ConfigError
from ottla.core.ids import Address
from ottla.lake.declared import DeclaredTables
from ottla.lake.progress import TableProgress, WriterProgress, read_progress
from ottla.lake.status import _with_states

QUIET = Logging("warning", "text")


def test_topics_declare_their_tables_by_configs() -> None:
    tables = DeclaredTables(namespace="topics", registry="http://registry")
    on = {"ottla.table.enable": "true"}
    found = {
        each.topic: each
        for each in tables.declared(
            {
                "raw": on,
                "off": {"ottla.table.enable": "false", "ottla.table.values": "json"},
                "json": {
                    **on,
                    "ottla.table.values": "json",
                    "ottla.table.columns": "id bigint",
                    "ottla.table.partition.by": "day(_timestamp)",
                    "ottla.table.commit.interval.ms": "30000",
                    "ottla.table.allow.gaps": "true",
                },
                "avro": {**on, "ottla.table.values": "registry", "ottla.table.columns": "left over"},
            }
        )
    }
    assert list(found) == ["raw", "json", "avro"]
    assert (found["raw"].values.format, found["raw"].interval_s, found["raw"].allows_gaps) == ("raw", 10.0, False)
    json = found["json"]
    assert (json.values.columns, json.interval_s, json.allows_gaps) == ("id bigint", 30.0, True)
    assert json.partition_by == parse_partitioning("day(_timestamp)")
    assert (found["avro"].values.registry, found["avro"].values.columns) == ("http://registry", "")


def test_a_table_of_json_needs_columns() -> None:
    def problem(**given: str) -> str | None:
        configs = usable({f"ottla.table.{name}": value for name, value in given.items()})
        return conflict({**BrokerConfigs().topic_values, **configs})

    assert "needs ottla.table.columns" in str(problem(enable="true", values="json"))
    assert problem(enable="true", values="json", columns="id bigint") is None
    assert problem(values="json") is None


def broker(protocol: str = "PLAINTEXT", cluster: object = None, inherited: object = None) -> Any:
    config = SimpleNamespace(uses_tls="SSL" in protocol, uses_sasl="SASL" in protocol)
    port = SimpleNamespace(config=config, address=Address("::", 9092))
    return SimpleNamespace(
        cluster=cluster,
        inherited=inherited,
        listener=SimpleNamespace(ports=[port]),
        http_address=Address("127.0.0.1", 8080),
        lake_folder=Path("data/lake"),
    )


def test_the_writer_connects_to_a_plaintext_listener_and_the_registry_of_the_broker() -> None:
    plan = writer_plan(broker(), LakeConfig(), None, QUIET)
    assert plan.profile.servers == "127.0.0.1:9092"
    assert plan.registry == "http://127.0.0.1:8080/schema-registry"
    assert plan.folder == Path("data/lake").absolute()


def test_the_writer_needs_a_profile_if_the_broker_requires_a_login(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no PLAINTEXT listener"):
        writer_plan(broker("SASL_SSL"), LakeConfig(), None, QUIET)
    file = tmp_path / "ottla.toml"
    file.write_text('[brokers.lake]\nservers = "localhost:9093"\nuser = "lake"\n')
    plan = writer_plan(broker("SASL_SSL"), LakeConfig(broker="lake"), file, QUIET)
    assert (plan.profile.servers, plan.profile.user) == ("localhost:9093", "lake")


def test_nodes_of_a_cluster_need_a_shared_catalog_and_workers_do_not() -> None:
    with pytest.raises(ConfigError, match=r"set lake\.catalog"):
        writer_plan(broker(cluster=object()), LakeConfig(), None, QUIET)
    shared = LakeConfig(catalog=("type=rest", "uri=http://catalog"), warehouse="s3://bucket/lake")
    assert writer_plan(broker(cluster=object()), shared, None, QUIET).catalog["uri"] == "http://catalog"
    assert not writer_plan(broker(cluster=object(), inherited=object()), LakeConfig(), None, QUIET).catalog


def test_a_catalog_property_without_a_value_is_rejected() -> None:
    with pytest.raises(ValueError, match="catalog must be KEY=VALUE"):
        LakeConfig(catalog=("rest",))


def test_the_state_of_a_table_is_that_of_the_writer_and_stopped_if_it_has_ended(tmp_path: Path) -> None:
    assert read_progress(tmp_path) is None
    writer = WriterProgress(pid=2**30, started_ms=1, topics={"a.b": TableProgress(state="failed", error="why")})
    writer.write(tmp_path)
    known = read_progress(tmp_path)
    assert known == writer
    rows = _with_states([{"table": "topics.c", "topic": "c"}], known, "topics")
    assert [(row["table"], row["state"]) for row in rows] == [("topics.c", ""), ("topics.a_b", "stopped")]
