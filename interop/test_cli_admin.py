"""`ottla topic`, `group`, `transaction` and `cluster` administer Apache Kafka."""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer

import ottla
from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_broker import KafkaBroker
from interop.kafka_tools import run_tool
from ottla.cli.main import program
from ottla.client.errors import ProducerFenced

PATIENCE_S = 20
GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@pytest.fixture(scope="module")
def broker(kafka: KafkaArtifacts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with KafkaBroker(kafka, tmp_path_factory.mktemp("kafka-commanded")) as broker:
        yield broker


@pytest.fixture
def name() -> str:
    """A topic and group name, new each time, so that a retried test does not find its leftovers."""
    return f"of-{uuid.uuid4()}"


class Cli:
    def __init__(self, servers: str) -> None:
        self._servers = servers

    def __call__(self, *arguments: str, given: str = "", exit_code: int = 0) -> str:
        done = CliRunner().invoke(
            program, arguments, input=given, env={"OTTLA_BROKER": self._servers}, catch_exceptions=False
        )
        assert done.exit_code == exit_code, done.output
        return done.stderr if exit_code else done.stdout

    def json(self, *arguments: str) -> Any:  # noqa: ANN401
        return json.loads(self(*arguments, "-o", "json"))

    def committed(self, group: str) -> dict[int, int]:
        [described] = self.json("group", "describe", group)
        return {row["partition"]: row["committed"] for row in described["partitions"]}


@pytest.fixture
def cli(broker: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    return Cli(broker.bootstrap)


def fill(cli: Cli, topic: str) -> None:
    """Two partitions of ten messages, a second apart."""
    cli("topic", "create", topic, "-p", "2")
    lines = [f'{{"value": {n}, "partition": {n % 2}, "timestamp": {n // 2 * 1000}}}\n' for n in range(20)]
    cli("produce", topic, "-f", "json", given="".join(lines))


def until(is_so: Callable[[], bool]) -> None:
    """Changes are acknowledged by the controller; the broker asked next may see them slightly later."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline


def test_topics(cli: Cli, name: str) -> None:
    cli("topic", "create", name, "-p", "2", "--set", "retention.ms=1000000", "--dry-run")
    cli("topic", "create", name, "-p", "2", "--set", "retention.ms=1000000")
    assert "TOPIC_ALREADY_EXISTS" in cli("topic", "create", name, exit_code=1)
    assert cli("topic", "create", name, "--if-not-exists") == ""
    row = {"topic": name, "partitions": 2, "replicas": 1, "problems": None, "internal": False}
    until(lambda: row in cli.json("topic", "list"))

    cli("topic", "alter", name, "-p", "3", "--set", "segment.ms=500000", "--unset", "retention.ms")
    until(lambda: f"{name}: 3 partitions, replication factor 1, 0 messages\n" in cli("topic", "describe", name))
    [described] = cli.json("topic", "describe", name)
    assert ("segment.ms", "500000") in [(row["setting"], row["value"]) for row in described["configs"]]

    cli("topic", "delete", name, "-y")
    until(lambda: name not in cli("topic", "list"))
    assert "UNKNOWN_TOPIC" in cli("topic", "describe", name, exit_code=1)


def test_records_are_deleted(cli: Cli, name: str) -> None:
    fill(cli, name)
    deleted = cli("topic", "delete-records", name, "--before", "1970-01-01T00:00:04Z", "-p", "0", "-y")
    assert deleted == f"{name}-0 begins at 4 now\n"
    deleted = cli("topic", "delete-records", name, "--before", "-1", "-y")
    assert deleted == f"{name}-0 begins at 9 now\n{name}-1 begins at 9 now\n"


def test_groups(cli: Cli, name: str) -> None:
    fill(cli, name)
    cli("consume", name, "-g", name, "-n", "20")
    assert [row["state"] for row in cli.json("group", "list") if row["group"] == name] == ["Empty"]
    assert cli.committed(name) == {0: 10, 1: 10}
    for where, expected in (
        (["--to", "earliest"], {0: 0, 1: 0}),
        (["--shift-by", "3"], {0: 3, 1: 3}),
        (["--to", "1970-01-01T00:00:07Z", "-t", f"{name}:1"], {0: 3, 1: 7}),
        (["--to", "latest"], {0: 10, 1: 10}),
        (["--to", "5"], {0: 5, 1: 5}),
        (["--to", "-1"], {0: 9, 1: 9}),
    ):
        before = cli.committed(name)
        cli("group", "reset-offsets", name, *where)
        assert cli.committed(name) == before
        cli("group", "reset-offsets", name, *where, "--execute")
        assert cli.committed(name) == expected
    cli("group", "delete-offsets", name, "-t", f"{name}:0", "-y")
    assert cli.committed(name) == {1: 9}
    cli("group", "delete", name, "-y")
    assert "GROUP_ID_NOT_FOUND" in cli("group", "describe", name, exit_code=1)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_of_either_protocol_are_shown(cli: Cli, broker: KafkaBroker, name: str, protocol: str) -> None:
    fill(cli, name)
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": name,
        "client.id": "ann",
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
    }
    reader = Consumer(settings)
    try:
        reader.subscribe([name])
        until(lambda: reader.poll(1) is not None)
        [described] = cli.json("group", "describe", name)
        [member] = described["members"]
        assert (member["client"], member["partitions"]) == ("ann", [f"{name}-0", f"{name}-1"])
        assert [row["client"] for row in described["partitions"]] == ["ann", "ann"]
        assert "with 1 member; stop its members" in cli(
            "group", "reset-offsets", name, "--to", "latest", "-t", name, "--execute", exit_code=1
        )
    finally:
        reader.close()


def test_offset_files_have_the_format_of_kafkas_tool(
    cli: Cli, name: str, kafka: KafkaArtifacts, broker: KafkaBroker, tmp_path: Path
) -> None:
    fill(cli, name)
    cli("group", "reset-offsets", name, "--to", "4", "-t", name, "--execute")
    ours = tmp_path / "ours.csv"
    ours.write_text(cli("group", "export-offsets", name).replace(",4\n", ",6\n"))

    tool = ["--bootstrap-server", broker.bootstrap, "--group", name, "--reset-offsets"]
    done = run_tool(kafka, GROUPS_TOOL, *tool, "--from-file", str(ours), "--execute")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert cli.committed(name) == {0: 6, 1: 6}

    done = run_tool(kafka, GROUPS_TOOL, *tool, "--all-topics", "--to-earliest", "--dry-run", "--export")
    theirs = tmp_path / "theirs.csv"
    theirs.write_text(done.stdout)
    cli("group", "reset-offsets", name, "--from-file", str(theirs), "--execute")
    assert cli.committed(name) == {0: 0, 1: 0}


def test_transactions_are_described_and_aborted(cli: Cli, name: str, broker: KafkaBroker) -> None:
    cli("topic", "create", name, "-p", "1")
    with (  # noqa: PT012
        ottla.Producer(broker.bootstrap, transactional_id=name) as producer,
        pytest.raises(ProducerFenced),
        producer.transaction(),
    ):
        producer.send(name, b"never seen")
        producer.flush()
        [listed] = cli.json("transaction", "list", "--pattern", name)
        assert (listed["state"], listed["coordinator"]) == ("Ongoing", 1)
        [described] = cli.json("transaction", "describe", name)
        assert described["partitions"] == [f"{name}-0"]
        [open_one] = cli.json("transaction", "producers", name, "--open")
        assert (open_one["producer_id"], open_one["transaction_start"]) == (listed["producer_id"], 0)
        assert cli.json("transaction", "find-hanging", "-t", name, "--older-than", "0s") == []
        cli("transaction", "abort", name, "--yes")
    until(lambda: cli.json("transaction", "producers", name, "--open") == [])


def test_a_transaction_is_aborted_in_one_partition(cli: Cli, name: str, broker: KafkaBroker) -> None:
    cli("topic", "create", name, "-p", "1")
    with (  # noqa: PT012
        ottla.Producer(broker.bootstrap, transactional_id=name) as producer,
        pytest.raises(StopIteration),
        producer.transaction(),
    ):
        producer.send(name, b"never seen")
        producer.flush()
        cli("transaction", "abort", "--topic", f"{name}:0", "--start-offset", "0", "--yes")
        assert cli.json("transaction", "producers", name, "--open") == []
        raise StopIteration


def test_the_cluster_and_its_settings(cli: Cli, broker: KafkaBroker) -> None:
    told = cli.json("cluster", "describe")
    assert (told["brokers"], told["partitions_without_a_leader"]) == (1, 0)
    host, _, port = broker.bootstrap.rpartition(":")
    assert cli.json("cluster", "brokers") == [
        {"id": 1, "host": host, "port": int(port), "rack": None, "controller": True}
    ]
    cli("cluster", "configs", "alter", "1", "--set", "log.retention.ms=86400000")
    until(
        lambda: (
            ("log.retention.ms", "86400000", "dynamic_broker")
            in [(row["setting"], row["value"], row["source"]) for row in cli.json("cluster", "configs", "show", "1")]
        )
    )
    cli("cluster", "configs", "alter", "1", "--unset", "log.retention.ms")
    cli("cluster", "configs", "alter", "all", "--set", "log.retention.ms=5000000", "--dry-run")
    assert "log.dirs" in cli("cluster", "configs", "alter", "1", "--set", "log.dirs=/x", exit_code=1)


def test_bench_and_doctor(cli: Cli) -> None:
    produced, consumed, *_ = cli.json("bench", "-n", "1000", "--rate", "1000", "--seconds", "10")
    assert produced["messages"] == consumed["messages"] == 1000
    free = ("--set", "net.port=0", "--set", "http.port=-1")
    found = {finding["subject"]: finding["judgement"] for finding in cli.json("doctor", *free)}
    assert (found["broker"], found["broker 1"]) == ("ok", "ok")
