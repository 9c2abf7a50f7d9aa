"""Kafka Streams' word count with `exactly_once_v2`, with kills of the broker and the application."""

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.client.producer.reading import read_all
from tests.clients.processes import Server

import ottla
from interop.foreign_clients import CLIENTS
from interop.kafka_artifacts import KafkaArtifacts
from interop.processes import ended
from ottla.client.admin.configs import ConfigResource

PARTITIONS = 2
LINES = 300
WORDS = ("ottla", "kafka", "franz", "max", "felice", "milena", "dora")
POLL_S = 0.1
PATIENCE_S = 60


def test_words_are_counted_exactly_once_despite_kills(kafka: KafkaArtifacts, tmp_path: Path) -> None:
    expected: Counter[str] = Counter()
    settings = "broker.compaction_check_interval_ms=50"
    with Server(tmp_path / "data", settings) as server, ottla.Admin(server.address) as admin:
        for topic in ("lines", "counts"):
            admin.create_topic(topic, partitions=PARTITIONS)
        with _word_count(kafka, server, tmp_path / "state"):
            expected += _write_lines(server, 0)
            _wait_for(server, bool)
            server.restart("kill")
            expected += _write_lines(server, 1)
            _wait_for(server, lambda counts: counts.total() > LINES * 3)
        # It restarts with only the compacted changelog.
        with _word_count(kafka, server, tmp_path / "other-state"):
            expected += _write_lines(server, 2)
            _wait_for(server, lambda counts: counts == expected)
        _check_that_counts_only_grow(server)
        cleanup = admin.describe_configs(ConfigResource.topic("word-count-store-changelog"))["cleanup.policy"].value
        assert cleanup == "compact"
        assert "word-count-store-changelog" in (tmp_path / "data" / "cleaner-offset-checkpoint").read_text()
        assert "word-count-words-repartition" in admin.list_topics()


@contextmanager
def _word_count(kafka: KafkaArtifacts, server: Server, state: Path) -> Iterator[None]:
    """It is killed at the end."""
    program = str(CLIENTS / "java" / "WordCount.java")
    command = kafka.command(program, [server.address, str(state)], "-Xmx256m")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process, ended(process):
        yield


def _write_lines(server: Server, turn: int) -> Counter[str]:
    words: Counter[str] = Counter()
    with ottla.Producer(server.address) as producer:
        for number in range(LINES):
            line = [WORDS[(number * 3 + turn + place) % len(WORDS)] for place in range(number % 4 + 1)]
            producer.send("lines", " ".join(line).encode(), partition=number % PARTITIONS)
            words.update(line)
    return words


def _counts(server: Server) -> Counter[str]:
    told = [each for partition in range(PARTITIONS) for each in read_all(server.address, "counts", partition)]
    return Counter({(each.key or b"").decode(): int(each.value or b"") for each in told})


def _wait_for(server: Server, is_reached: Callable[[Counter[str]], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_reached(counts := _counts(server)):
        assert time.monotonic() < deadline, counts
        time.sleep(POLL_S)


def _check_that_counts_only_grow(server: Server) -> None:
    for partition in range(PARTITIONS):
        last: dict[bytes | None, int] = {}
        for each in read_all(server.address, "counts", partition):
            count = int(each.value or b"")
            assert count > last.get(each.key, 0)
            last[each.key] = count
