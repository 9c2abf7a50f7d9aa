"""A real broker that serves a partition written by another program."""

import shutil
from pathlib import Path

from confluent_kafka import TopicPartition

from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_broker import KafkaBroker
from interop.kafka_clients import Admin, Contents, consume_all

UNDISTURBED = {"retention.ms": "-1", "segment.ms": "3155760000000"}


def consume_foreign(kafka: KafkaArtifacts, partition: Path, folder: Path, *, recovers: bool) -> Contents:
    """What a real consumer gets when a real broker takes over this partition (`partition` is not changed).

    With `recovers`, the broker believes that it was killed: it reads every batch, and rebuilds the indexes.
    Without, it takes the indexes, the snapshots and the leader epochs as they are.
    """
    topic, _, number = partition.name.rpartition("-")
    broker = KafkaBroker(kafka, folder)
    with broker:
        Admin(broker.bootstrap).create(topic, int(number) + 1, UNDISTURBED)
        # Waits until the broker has made the folder.
        consume_all(broker.bootstrap, [TopicPartition(topic, int(number))])
    _replace(partition, broker.log_dir / partition.name)
    if recovers:
        (broker.log_dir / ".kafka_cleanshutdown").unlink()
    with broker:
        contents = consume_all(broker.bootstrap, [TopicPartition(topic, int(number))])
    for complaint in (
        "Corruption found",
        "invalid messages",
        "corrupted index",
        "Failed to load producer snapshot",
    ):
        assert complaint not in broker.report(), broker.report()
    return contents


def _replace(source: Path, target: Path) -> None:
    for file in target.iterdir():
        # The topic's id is the broker's own.
        if file.name != "partition.metadata":
            file.unlink()
    for file in source.iterdir():
        if file.name != "partition.metadata":
            shutil.copy(file, target / file.name)
