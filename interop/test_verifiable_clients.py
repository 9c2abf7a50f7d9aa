"""Kafka's verifiable producer and two verifiable consumers in a group: every acknowledged record is received once."""

import json
import queue
import subprocess
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_clients import Admin
from interop.kafka_tools import run_tool
from interop.ottla_server import OttlaServer

TOOLS = "org.apache.kafka.tools"
MEMBERS = 2
PARTITIONS = 4
RECORDS = 5000
COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
TIMEOUT_S = 60
Event = dict[str, Any]


class Events:
    """The JSON lines of several tools, in the order of arrival."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, Event]] = []
        self._arriving: queue.Queue[tuple[int, Event]] = queue.Queue()

    def read(self, teller: int, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self._arriving.put((teller, json.loads(line)))

    def wait_until(self, is_it: Callable[[], bool]) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not is_it():
            self.seen.append(self._arriving.get(timeout=deadline - time.monotonic()))

    def named(self, name: str) -> list[tuple[int, Event]]:
        return [(teller, event) for teller, event in self.seen if event["name"] == name]


@contextmanager
def consumers(kafka: KafkaArtifacts, bootstrap: str, topic: str, events: Events) -> Iterator[None]:
    """Static members that give up partitions one by one: what the programs of `clients/` do not do."""
    names = ("--topic", topic, "--group-id", f"{topic}-group", "--reset-policy", "earliest", "--verbose")
    options = ["--bootstrap-server", bootstrap, *names, "--assignment-strategy", COOPERATIVE, "--group-instance-id"]
    started = [
        subprocess.Popen(
            kafka.command(f"{TOOLS}.VerifiableConsumer", [*options, f"member-{number}"], "-Xmx256m"),
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
        for number in range(MEMBERS)
    ]
    readers = [threading.Thread(target=events.read, args=pair, daemon=True) for pair in enumerate(started)]
    for reader in readers:
        reader.start()
    try:
        yield
    finally:
        for process in started:
            process.terminate()
        for process, reader in zip(started, readers, strict=True):
            process.wait(TIMEOUT_S)
            reader.join(TIMEOUT_S)


def test_each_acknowledged_record_reaches_one_member_of_the_group(kafka: KafkaArtifacts, ottla: OttlaServer) -> None:
    topic = f"verifiable-{uuid.uuid4().hex}"  # another one if it is tried again
    Admin(ottla.bootstrap).create(topic, PARTITIONS)
    events = Events()

    with consumers(kafka, ottla.bootstrap, topic, events):
        events.wait_until(lambda: owned(events) == {0: 2, 1: 2})
        acknowledged = produce(kafka, ottla.bootstrap, topic)
        events.wait_until(lambda: sum(e["count"] for _, e in events.named("records_consumed")) >= RECORDS)
        events.wait_until(lambda: sum(committed(events).values()) >= RECORDS)

    received = [(e["partition"], e["offset"], e["value"]) for _, e in events.named("record_data")]
    assert len(received) == RECORDS
    assert sorted(received) == sorted(acknowledged)
    assert all(event["success"] for _, event in events.named("offsets_committed"))
    ends = {partition: sum(1 for record in received if record[0] == partition) for partition in committed(events)}
    assert committed(events) == ends


def produce(kafka: KafkaArtifacts, bootstrap: str, topic: str) -> list[tuple[int, int, str]]:
    options = ("--topic", topic, "--max-messages", str(RECORDS), "--acks", "-1", "--repeating-keys", "100")
    done = run_tool(kafka, f"{TOOLS}.VerifiableProducer", "--bootstrap-server", bootstrap, *options)
    assert done.exit_code == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    [summary] = [event for event in told if event["name"] == "tool_data"]
    assert (summary["sent"], summary["acked"]) == (RECORDS, RECORDS)
    sent = [event for event in told if event["name"] == "producer_send_success"]
    return [(event["partition"], event["offset"], event["value"]) for event in sent]


def owned(events: Events) -> Counter[int]:
    """How many partitions each member has: this assignor tells of changes only."""
    counts = Counter[int]()
    for teller, event in events.named("partitions_assigned"):
        counts[teller] += len(event["partitions"])
    for teller, event in events.named("partitions_revoked"):
        counts[teller] -= len(event["partitions"])
    return counts


def committed(events: Events) -> dict[int, int]:
    offsets = [offset for _, event in events.named("offsets_committed") for offset in event["offsets"]]
    return {offset["partition"]: offset["offset"] for offset in offsets}
