"""Read-process-write loops in Java and Go, with a broker that is killed."""

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.client.producer.reading import values
from tests.clients.processes import Server

import ottla
from interop.foreign_clients import CLIENTS
from interop.kafka_artifacts import KafkaArtifacts
from interop.ottla_server import OttlaServer
from interop.processes import ended
from ottla.core.ids import TopicPartition

PARTITIONS = 2
PER_PARTITION = 100
KILLED_AFTER = (2, 5)
"""Transactions with all records sent that have not ended."""
SOURCE, TARGET = "source", "target"


@dataclass(frozen=True, slots=True)
class Played:
    transactions: int
    epochs: int
    """How many of its producer's are in the target."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as server, ottla.Admin(server.address) as admin:
        for topic in (SOURCE, TARGET):
            admin.create_topic(topic, partitions=PARTITIONS)
        with ottla.Producer(server.address) as producer:
            for partition in range(PARTITIONS):
                for number in range(PER_PARTITION):
                    producer.send(SOURCE, str(number).encode(), partition=partition)
        yield server


def test_java_writes_exactly_once_with_an_epoch_for_each_transaction(
    server: Server, kafka: KafkaArtifacts, tmp_path: Path
) -> None:
    command = kafka.command(str(CLIENTS / "java" / "ExactlyOnce.java"), _arguments(server), "-Xmx256m")
    played = _play(server, command, tmp_path)
    assert played.epochs > played.transactions / 2


def test_an_older_java_client_writes_exactly_once(server: Server, kafka: KafkaArtifacts, tmp_path: Path) -> None:
    program = str(CLIENTS / "java" / "ExactlyOnce.java")
    played = _play(server, kafka.with_old_client().command(program, _arguments(server), "-Xmx256m"), tmp_path)
    assert played.epochs < played.transactions / 2


def test_franz_go_writes_exactly_once_with_an_epoch_for_each_transaction(
    server: Server, franz_go: Path, tmp_path: Path
) -> None:
    played = _play(server, [str(franz_go), "exactly-once", *_arguments(server)], tmp_path)
    assert played.epochs > played.transactions / 2


def test_franz_go_writes_exactly_once_as_before(server: Server, franz_go: Path, tmp_path: Path) -> None:
    played = _play(server, [str(franz_go), "exactly-once", *_arguments(server), "old"], tmp_path)
    assert played.epochs < played.transactions / 2


def _arguments(server: Server) -> list[str]:
    return [server.address, SOURCE, TARGET, str(PARTITIONS * PER_PARTITION)]


def _play(server: Server, command: Sequence[str], folder: Path) -> Played:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program, ended(program):
        assert program.stdout is not None
        told = []
        for line in program.stdout:
            told.append(line)
            if line == "sent\n" and len(told) in KILLED_AFTER:
                server.restart("kill")
        assert program.wait() == 0
    assert told[-1] == "fenced\n"
    assert told.count("sent\n") > max(KILLED_AFTER)

    made = [f"made of {number}".encode() for number in range(PER_PARTITION)]
    assert values(server.address, TARGET, 0) == [*made, b"last"]
    assert values(server.address, TARGET, 1) == made
    with ottla.Admin(server.address) as admin:
        progress = admin.group_offsets(f"{TARGET}-group")
    assert [progress[TopicPartition(SOURCE, part)].offset for part in range(PARTITIONS)] == [PER_PARTITION] * 2
    batches = OttlaServer(server.address, folder / "data", None).batches(TARGET, 1)
    return Played(told.count("sent\n"), len({batch.producer_epoch for batch in batches}))
