"""Clients that run transactions over partitions on every node, one after the other, and record the outcomes."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from .history import Read
from .processes import until
from .stories import Fate
from .story_checker import Ending

if TYPE_CHECKING:
    from collections.abc import Callable

    from .stories import Stories, Story

SOURCE: Final = "source"
"""The topic whose offsets workers commit."""
PARTITIONS: Final = 3
QUIET: Final = {"log_level": 0}
PATIENCE_S: Final = 60.0
_LAST: Final = "last"


class Scene:
    """The cluster under test and the history."""

    def __init__(self, servers: str, topic: str, stories: Stories) -> None:
        self.servers = servers
        self.topic = topic
        self.stories = stories

    def prepare(self) -> None:
        admin = AdminClient({**QUIET, "bootstrap.servers": self.servers})
        wanted = [
            NewTopic(self.topic, PARTITIONS, 3, config={"min.insync.replicas": "2"}),
            NewTopic(SOURCE, 1, 3),
        ]
        for name, created in admin.create_topics(wanted).items():
            try:
                created.result(PATIENCE_S)
            except KafkaException:
                assert name == SOURCE  # created by another test

    def consumer(self, group: str) -> Consumer:
        return Consumer(
            {
                **QUIET,
                "bootstrap.servers": self.servers,
                "group.id": group,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
            }
        )

    def places(self) -> list[TopicPartition]:
        return [TopicPartition(self.topic, index, OFFSET_BEGINNING) for index in range(PARTITIONS)]

    def committed_reads(self, reader: str, consumer: Consumer) -> list[Read]:
        return [
            Read(reader, each.partition(), each.offset(), each.value().decode())
            for each in consumer.consume(1000, timeout=0.1)
            if each.error() is None
        ]


class Worker:
    """A transactional id and its producer, which is sometimes replaced during an open transaction."""

    pause_s = 0.0
    """Pause between the last write and the end, so that faults can happen there."""
    commits = 0.75
    """The share of transactions that are to be committed; of the others some are aborted and some left open."""

    def __init__(self, scene: Scene, name: str, seed: int) -> None:
        self.name = name
        self.committed = 0
        self.is_about_to_end = False
        self.scene = scene
        self.pick = random.Random(seed)
        self.transactional_id = f"{scene.topic}-{name}"
        self._count = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)
        self._failure: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._is_over.set()
        self._thread.join(PATIENCE_S * 3)
        assert not self._thread.is_alive(), f"{self.name} does not end"
        assert self._failure is None, self._failure

    def wait_for_more(self, count: int = 5) -> None:
        """Wait until this many more transactions are committed."""
        goal = self.committed + count
        until(lambda: self.committed >= goal or self._failure, f"{self.name} to commit", PATIENCE_S)
        assert self._failure is None, self._failure

    def _run(self) -> None:
        try:
            while not self._is_over.is_set():
                self.transact()
            self.settle()
        except BaseException as failed:  # reported to the test by its own thread
            self._failure = failed
            raise

    def transact(self) -> None:
        """Run one transaction to its end, or leave it open."""
        raise NotImplementedError

    def settle(self) -> None:
        """End the open transaction."""
        raise NotImplementedError

    def begins(self) -> Story:
        self._count += 1
        return self.scene.stories.begins(self.name, self._count)

    def is_committed(self, story: Story) -> None:
        self.scene.stories.becomes(story, Fate.COMMITTED)
        self.committed += 1

    def places(self) -> list[int]:
        """The partitions of the next records, in order; mostly several on different nodes."""
        chosen = self.pick.sample(range(PARTITIONS), self.pick.randint(1, PARTITIONS))
        return [partition for partition in chosen for _ in range(self.pick.randint(1, 3))]


class CommittedReader:
    """Reads committed records during the run; none of them may disappear later."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._consumer = scene.consumer("reader")
        self._consumer.assign(scene.places())
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reader")

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._is_over.set()
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        while not self._is_over.is_set():
            self._scene.stories.read(self._scene.committed_reads("reader", self._consumer))
        self._consumer.close()


def read_ending(scene: Scene, workers: list[str], timeout_s: float = PATIENCE_S) -> Ending:
    """All readable records, up to a final record in each partition; fewer if an open transaction blocks it."""
    producer = Producer({**QUIET, "bootstrap.servers": scene.servers, "acks": "all"})
    for partition in range(PARTITIONS):
        producer.produce(scene.topic, _LAST, partition=partition)
    assert producer.flush(PATIENCE_S) == 0
    logs: dict[int, dict[int, str]] = {index: {} for index in range(PARTITIONS)}
    ended: set[int] = set()
    consumer = scene.consumer("ending")
    consumer.assign(scene.places())

    def is_all_read() -> bool:
        for _, partition, offset, value in scene.committed_reads("ending", consumer):
            if value == _LAST:
                ended.add(partition)
            else:
                logs[partition][offset] = value
        return len(ended) == PARTITIONS

    with suppress(AssertionError):
        until(is_all_read, "the last record", timeout_s)
    consumer.close()
    return Ending(logs, {name: _progress(scene, name, timeout_s) for name in workers})


def _progress(scene: Scene, name: str, timeout_s: float) -> int | None:
    """The committed offset of the group; None also while a transaction is pending."""
    consumer = scene.consumer(name)
    found: list[Any] = []

    def is_known() -> bool:
        with suppress(KafkaException):
            found[:] = consumer.committed([TopicPartition(SOURCE, 0)], timeout=min(timeout_s, 5.0))
        return bool(found) and found[0].error is None

    with suppress(AssertionError):
        until(is_known, f"the offset of {name}", timeout_s)
    consumer.close()
    return found[0].offset if found and found[0].offset >= 0 else None


def transacting(scene: Scene, workers: list[Worker], faults: Callable[[], None]) -> None:
    """Run workers while faults happen; stop when all make progress again."""
    reader = CommittedReader(scene)
    for each in (*workers, reader):
        each.start()  # type: ignore[attr-defined]
    try:
        for worker in workers:
            worker.wait_for_more()
        faults()
        for worker in workers:
            worker.wait_for_more()
    finally:
        for each in (*workers, reader):
            each.end()  # type: ignore[attr-defined]
