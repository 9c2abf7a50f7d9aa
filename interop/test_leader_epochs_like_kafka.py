"""Leader epochs: a real broker and Ottla give the same responses for the same log (KIP-101, KIP-320)."""

import shutil
from itertools import product
from pathlib import Path

import ottla
from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_broker import KafkaBroker
from interop.kafka_clients import Admin, Sender
from interop.kafka_wire import ask
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

TOPIC = "epochs"
LEADERS = 3
"""The broker is started so often, and each time leads in a later epoch."""
PATTERNS = tuple(product((0, 1, 2), repeat=LEADERS))
"""How many records each leader writes."""
SHAPES = tuple((pattern, start) for pattern in PATTERNS for start in range(sum(pattern) + 1))
"""And where the log starts in the end, for a partition each."""
LATEST, EARLIEST = -1, -2

Answers = dict[tuple[object, ...], tuple[int, int, int]]


def write_in_each_epoch(broker: KafkaBroker) -> None:
    Admin(broker.bootstrap).create(TOPIC, len(SHAPES))
    for leader in range(LEADERS):
        if leader:
            broker.stop()
            broker.start()
        sender = Sender(broker.bootstrap)
        for number in range(2):
            for partition, (pattern, _) in enumerate(SHAPES):
                if number < pattern[leader]:
                    sender.send(TOPIC, b"x", timestamp=1_700_000_000_000, partition=partition)
            sender.flush()
    deleted = tuple(
        DeleteRecordsPartition(partition_index=index, offset=start) for index, (_, start) in enumerate(SHAPES)
    )
    topic = DeleteRecordsTopic(name=TOPIC, partitions=deleted)
    answer = ask(broker.bootstrap, DeleteRecordsRequest(topics=(topic,), timeout_ms=30_000), 2)
    assert {each.error_code for each in answer.topics[0].partitions} == {0}


def ends_of_epochs(bootstrap: str, epochs: range) -> Answers:
    answers: Answers = {}
    for epoch in epochs:
        wanted = tuple(OffsetForLeaderPartition(partition=each, leader_epoch=epoch) for each in range(len(SHAPES)))
        topics = (OffsetForLeaderTopic(topic=TOPIC, partitions=wanted),)
        answer = ask(bootstrap, OffsetForLeaderEpochRequest(replica_id=-1, topics=topics), 4)
        for each in answer.topics[0].partitions:
            answers["end", SHAPES[each.partition], epoch] = (each.error_code, each.leader_epoch, each.end_offset)
    return answers


def divergences(bootstrap: str, epochs: range) -> Answers:
    """Fetches by who read up to an offset, last in an epoch."""
    answers: Answers = {}
    for epoch, offset in product(epochs, range(2 * LEADERS + 1)):
        wanted = tuple(
            FetchPartition(partition=each, fetch_offset=offset, last_fetched_epoch=epoch, partition_max_bytes=1 << 20)
            for each in range(len(SHAPES))
        )
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic=TOPIC, partitions=wanted),))
        for each in ask(bootstrap, request, 12).responses[0].partitions:
            found = each.diverging_epoch
            key = ("fetch", SHAPES[each.partition_index], epoch, offset)
            answers[key] = (each.error_code, found.epoch, found.end_offset)
    return answers


def limits(bootstrap: str) -> Answers:
    answers: Answers = {}
    for timestamp in (LATEST, EARLIEST):
        wanted = tuple(ListOffsetsPartition(partition_index=each, timestamp=timestamp) for each in range(len(SHAPES)))
        request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=TOPIC, partitions=wanted),))
        for each in ask(bootstrap, request, 9).topics[0].partitions:
            key = ("limit", SHAPES[each.partition_index], timestamp)
            answers[key] = (each.error_code, each.offset, each.leader_epoch)
    return answers


def all_answers(bootstrap: str, epochs: range) -> Answers:
    return {**ends_of_epochs(bootstrap, epochs), **divergences(bootstrap, epochs), **limits(bootstrap)}


def copy_partitions(theirs: Path, ours: Path) -> None:
    """Copy the contents into Ottla's topic of the same name."""
    for partition in range(len(SHAPES)):
        name = f"{TOPIC}-{partition}"
        metadata = (ours / name / "partition.metadata").read_bytes()
        shutil.rmtree(ours / name)
        shutil.copytree(theirs / name, ours / name)
        (ours / name / "partition.metadata").write_bytes(metadata)
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        shutil.copyfile(theirs / name, ours / name)


def test_epochs_end_for_clients_where_they_end_at_a_real_broker(kafka: KafkaArtifacts, tmp_path: Path) -> None:
    with KafkaBroker(kafka, tmp_path) as broker:
        write_in_each_epoch(broker)
        epochs = range(-1, max(epoch for _, _, epoch in limits(broker.bootstrap).values()) + 3)
        expected = all_answers(broker.bootstrap, epochs)
    with ottla.Broker(tmp_path / "ottla") as made:
        Admin(made.bootstrap_servers).create(TOPIC, len(SHAPES))
        limits(made.bootstrap_servers)  # opens them, which creates their folders
    copy_partitions(broker.log_dir, tmp_path / "ottla")

    with ottla.Broker(tmp_path / "ottla") as opened:
        answers = all_answers(opened.bootstrap_servers, epochs)

    assert {key: (answers[key], expected[key]) for key in expected if answers[key] != expected[key]} == {}
