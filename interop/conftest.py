import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from interop import foreign_clients
from interop.confluent_java import with_confluent
from interop.iceberg_readers import iceberg_jars, python_readers
from interop.kafka_artifacts import KafkaArtifacts, ToolMissingError, kafka_artifacts
from interop.kafka_broker import KafkaBroker
from interop.kafka_clients import Admin, Contents, consume_all
from interop.kafka_content import BROKER_PROPERTIES, append_more, fill
from interop.ottla_server import OttlaServer, ottla_server

Found = TypeVar("Found")

HERE = Path(__file__).parent
FIRST_FETCH_TIMEOUT_S = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test here waits for Kafka to be fetched, which may take minutes once.

    A failed test is run again: third-party programs have races and timeouts.
    """
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.flaky(reruns=2))
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(FIRST_FETCH_TIMEOUT_S))


@dataclass(frozen=True, slots=True)
class KafkaFolder:
    """The data folder of a stopped broker, and the records its consumers had read.

    Shared by all tests: copy what you want to change.
    """

    log_dir: Path
    contents: Contents

    def partition(self, topic: str, partition: int = 0) -> Path:
        return self.log_dir / f"{topic}-{partition}"


def _needed(find: Callable[[], Found]) -> Found:
    try:
        return find()
    except ToolMissingError as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def kafka() -> KafkaArtifacts:
    """Apache Kafka, ready to run."""
    return _needed(kafka_artifacts)


@pytest.fixture(scope="session")
def confluent_java(kafka: KafkaArtifacts) -> KafkaArtifacts:
    """Apache Kafka with Confluent's client of the registry and its Avro serializers."""
    return _needed(lambda: with_confluent(kafka))


@pytest.fixture(scope="session")
def kcat() -> Path:
    return _needed(lambda: foreign_clients.debian_program("kcat"))


@pytest.fixture(scope="session")
def chromium() -> Path:
    return _needed(lambda: foreign_clients.debian_program("chromium"))


@pytest.fixture(scope="session")
def franz_go() -> Path:
    """Our program with the Go client franz-go."""
    return _needed(lambda: foreign_clients.go_program("franz-go"))


@pytest.fixture(scope="session")
def sarama() -> Path:
    """Our program with the Go client Sarama."""
    return _needed(lambda: foreign_clients.go_program("sarama"))


@pytest.fixture(scope="session")
def kafkajs() -> list[str]:
    """How to run our program with the JavaScript client kafkajs."""
    return _needed(lambda: foreign_clients.node_program("kafkajs"))


@pytest.fixture(scope="session")
def versitygw() -> Path:
    """An S3 server in Go."""
    return _needed(lambda: foreign_clients.go_program("versitygw", "github.com/versity/versitygw/cmd/versitygw"))


@pytest.fixture(scope="session")
def azurite() -> list[str]:
    """How to run Microsoft's emulator of Azure's blobs."""
    return _needed(lambda: foreign_clients.node_program("azurite"))


@pytest.fixture(scope="session")
def v_queue() -> Path:
    """Our program with the Rust crate v_queue."""
    return _needed(lambda: foreign_clients.rust_program("v-queue"))


@pytest.fixture(scope="session")
def ottla(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaServer]:
    """One running Ottla for all foreign clients; each uses separate topics and groups."""
    with ottla_server(tmp_path_factory.mktemp("ottla-served")) as server:
        yield server


@pytest.fixture(scope="session")
def kafka_stopped(kafka: KafkaArtifacts, tmp_path_factory: pytest.TempPathFactory) -> KafkaFolder:
    """All kinds of content, after a clean stop."""
    broker = KafkaBroker(kafka, tmp_path_factory.mktemp("kafka-stopped"), BROKER_PROPERTIES)
    with broker:
        fill(broker)
        contents = consume_all(broker.bootstrap, Admin(broker.bootstrap).partitions())
    return KafkaFolder(broker.log_dir, contents)


@pytest.fixture(scope="session")
def kafka_killed(
    kafka: KafkaArtifacts, kafka_stopped: KafkaFolder, tmp_path_factory: pytest.TempPathFactory
) -> KafkaFolder:
    """The same folder, started again, written to, and left by a broker that was killed."""
    folder = tmp_path_factory.mktemp("kafka-killed")
    broker = KafkaBroker(kafka, folder, BROKER_PROPERTIES)
    shutil.copytree(kafka_stopped.log_dir, broker.log_dir)
    with broker:
        append_more(broker)
        contents = consume_all(broker.bootstrap, Admin(broker.bootstrap).partitions())
        broker.kill()
    return KafkaFolder(broker.log_dir, contents)


@pytest.fixture(scope="session")
def iceberg() -> Path:
    """The folder of Iceberg's Java library."""
    return _needed(iceberg_jars)


@pytest.fixture(scope="session")
def iceberg_packages() -> Path:
    """The folder of DuckDB and Polars."""
    return _needed(python_readers)
