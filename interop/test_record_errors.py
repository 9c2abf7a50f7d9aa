"""Produce with a few bad records: Kafka and Ottla name the same ones (KIP-467)."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

import ottla
from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_broker import KafkaBroker
from interop.kafka_wire import ask
from ottla.records.compression import Compression
from ottla.records.encode import BatchBuilder
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

DAY_MS = 24 * 3600 * 1000
PATIENCE_S = 10
TOPICS = {
    "compacted": ("cleanup.policy", "compact"),
    "dated": ("message.timestamp.before.max.ms", str(DAY_MS)),
}


@pytest.fixture(scope="module")
def both(kafka: KafkaArtifacts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    with (
        KafkaBroker(kafka, tmp_path_factory.mktemp("kafka")) as theirs,
        ottla.Broker(tmp_path_factory.mktemp("ottla")) as ours,
    ):
        brokers = [theirs.bootstrap, ours.bootstrap_servers]
        for broker in brokers:
            create_topics(broker)
        yield brokers


def create_topics(broker: str) -> None:
    topics = tuple(
        CreatableTopic(
            name=name,
            num_partitions=1,
            replication_factor=1,
            assignments=(),
            configs=(CreatableTopicConfig(name=config[0], value=config[1]),),
        )
        for name, config in TOPICS.items()
    )
    ask(broker, CreateTopicsRequest(topics=topics), 7)
    asked = MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in TOPICS))
    deadline = time.monotonic() + PATIENCE_S
    while any(one.error_code or not one.partitions for one in ask(broker, asked, 12).topics):
        assert time.monotonic() < deadline


def refusals(brokers: list[str], topic: str, batch: bytes) -> list[Any]:
    part = PartitionProduceData(index=0, records=batch)
    request = ProduceRequest(
        acks=-1, timeout_ms=5000, topic_data=(TopicProduceData(name=topic, partition_data=(part,)),)
    )
    answers = [ask(broker, request, 12).responses[0].partition_responses[0] for broker in brokers]
    return [(one.error_code, [each.batch_index for each in one.record_errors]) for one in answers]


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_both_name_the_records_without_a_key(both: list[str], codec: Compression) -> None:
    builder = BatchBuilder(codec)
    for number in range(100):
        builder.append(time.time_ns() // 1_000_000, None if number % 10 == 3 else b"k%d" % number, b"v")
    theirs, ours = refusals(both, "compacted", bytes(builder.build()))
    assert ours == theirs
    assert len(ours[1]) == 10


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_both_name_the_records_with_a_wrong_timestamp(both: list[str], codec: Compression) -> None:
    now_ms = time.time_ns() // 1_000_000
    builder = BatchBuilder(codec)
    for shift_days in (-3, 0, 2, 0, -2):
        builder.append(now_ms + shift_days * DAY_MS, b"k", b"v")
    theirs, ours = refusals(both, "dated", bytes(builder.build()))
    assert ours == theirs
