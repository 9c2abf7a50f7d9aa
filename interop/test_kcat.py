"""Debian's kcat, and so an old librdkafka, against a running Ottla."""

import json
import subprocess
import time
from pathlib import Path

import pytest

from interop.ottla_server import OttlaServer
from ottla.records.compression import Compression

TIMEOUT_S = 30
LINES = [f"key-{n}:value {n} {'x' * 200}" for n in range(50)]
CODECS = {codec.name.lower(): codec for codec in Compression}


class Kcat:
    def __init__(self, program: Path, bootstrap: str) -> None:
        self._start = [str(program), "-b", bootstrap]

    def run(self, *arguments: str, given: str = "") -> list[str]:
        """Its output; it must not report errors."""
        done = subprocess.run(
            [*self._start, *arguments], input=given, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "ERROR" not in done.stderr
        return done.stdout.splitlines()

    def produce(self, topic: str, lines: list[str], *options: str) -> None:
        self.run("-P", "-t", topic, "-K:", *options, given="".join(f"{line}\n" for line in lines))

    def consume(self, topic: str, *options: str) -> list[str]:
        return self.run("-C", "-t", topic, "-e", "-q", "-f", "%p %o %k:%s\n", *options)


@pytest.fixture(scope="module")
def client(kcat: Path, ottla: OttlaServer) -> Kcat:
    return Kcat(kcat, ottla.bootstrap)


@pytest.mark.parametrize("codec", CODECS)
def test_each_compression_arrives_and_comes_back(client: Kcat, ottla: OttlaServer, codec: str) -> None:
    topic = f"kcat-{codec}"
    client.produce(topic, LINES, "-p", "0", "-z", codec)

    assert client.consume(topic, "-p", "0", "-o", "beginning") == [f"0 {n} {line}" for n, line in enumerate(LINES)]
    assert client.consume(topic, "-p", "0", "-o", "-2") == [f"0 {n} {LINES[n]}" for n in (48, 49)]
    assert {batch.compression for batch in ottla.batches(topic, 0)} == {CODECS[codec]}


def test_an_idempotent_producer_with_headers_and_nulls(client: Kcat, ottla: OttlaServer) -> None:
    options = ("-p", "0", "-Z", "-H", "one=1", "-H", "two=2", "-X", "enable.idempotence=true")
    client.produce("kcat-headers", ["a:1", "b:", "c:3"], *options)

    consumed = client.run("-C", "-t", "kcat-headers", "-e", "-q", "-o", "beginning", "-f", "%o %k %S %h\n")
    assert consumed == ["0 a 1 one=1,two=2", "1 b -1 one=1,two=2", "2 c 1 one=1,two=2"]
    [batch] = ottla.batches("kcat-headers", 0)
    assert batch.producer_id >= 0
    assert batch.base_sequence == 0


def test_the_metadata_names_the_broker_and_the_topic(client: Kcat, ottla: OttlaServer) -> None:
    client.produce("kcat-listed", LINES[:1], "-p", "0")

    [told] = client.run("-L", "-J", "-t", "kcat-listed")
    metadata = json.loads(told)
    [broker] = metadata["brokers"]
    assert broker["name"] == ottla.bootstrap
    [topic] = metadata["topics"]
    assert topic["topic"] == "kcat-listed"
    ours = [{"id": broker["id"]}]
    assert topic["partitions"] == [{"partition": 0, "leader": broker["id"], "replicas": ours, "isrs": ours}]
    [everything] = client.run("-L", "-J")
    assert "kcat-listed" in {topic["topic"] for topic in json.loads(everything)["topics"]}


def test_offsets_for_times(client: Kcat) -> None:
    topic = "kcat-times"
    client.produce(topic, LINES[:10], "-p", "0")
    between_ms = time.time_ns() // 1_000_000 + 1
    while time.time_ns() // 1_000_000 <= between_ms:
        time.sleep(0.001)
    client.produce(topic, LINES[10:20], "-p", "0")

    asked = {"-2": 0, "-1": 20, "0": 0, str(between_ms): 10, str(between_ms + 3_600_000): -1}
    found = {at: client.run("-Q", "-t", f"{topic}:0:{at}") for at in asked}
    assert found == {at: [f"{topic} [0] offset {offset}"] for at, offset in asked.items()}
    assert client.consume(topic, "-o", f"s@{between_ms}") == [f"0 {n} {LINES[n]}" for n in range(10, 20)]


def test_a_group_continues_where_it_stopped(client: Kcat) -> None:
    topic = "kcat-group-topic"
    client.produce(topic, LINES, "-p", "0")
    group = ("-G", "kcat-group", topic, "-e", "-q", "-f", "%o %k:%s\n", "-X", "auto.offset.reset=earliest")

    assert client.run(*group, "-c", "20") == [f"{n} {LINES[n]}" for n in range(20)]
    assert client.run(*group) == [f"{n} {LINES[n]}" for n in range(20, 50)]
    client.produce(topic, LINES[:5], "-p", "0")
    assert client.run(*group) == [f"{50 + n} {LINES[n]}" for n in range(5)]
