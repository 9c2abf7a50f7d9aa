"""Clients that write and read continuously and record the responses."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.broker.raw_client import RawClient

import ottla
from ottla.client.errors import ClientError, RequestTimedOut
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

from .checker import UNTOLD
from .ends import end_of
from .history import Read, Sent
from .processes import until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .history import History

_QUIET: Final = {"log_level": 0}
_NO_CONFIGS: Final[Mapping[str, str]] = {}
_PACE_S: Final = 0.002
_PATIENCE_S: Final = 30.0
# Longer than any outage: once a record has timed out, librdkafka sends the others that are in flight again under a new
# producer epoch, which no broker can recognise as duplicates.
_DELIVERED_WITHIN_MS: Final = 120_000
# A paused broker keeps its connections open; another one is asked after this time.
_ANSWERED_WITHIN_MS: Final = 3_000


class Trial(NamedTuple):
    """The target of the load, and its recorded history."""

    servers: str
    topic: str
    partitions: int
    history: History

    def create_topic(self, factor: int = 3, min_insync: int = 2, configs: Mapping[str, str] = _NO_CONFIGS) -> None:
        admin = AdminClient({**_QUIET, "bootstrap.servers": self.servers})
        settings = {"min.insync.replicas": str(min_insync), **configs}
        topic = NewTopic(self.topic, self.partitions, factor, config=settings)
        admin.create_topics([topic])[self.topic].result(_PATIENCE_S)

    def places(self) -> list[TopicPartition]:
        return [TopicPartition(self.topic, index, OFFSET_BEGINNING) for index in range(self.partitions)]


class Placed:
    """Leaders and ISRs, as reported to clients."""

    def __init__(self, trial: Trial) -> None:
        self.topic = trial.topic
        self._servers = trial.servers.split(",")
        self._admin = AdminClient({**_QUIET, "bootstrap.servers": trial.servers})

    def partitions(self, server: str | None = None) -> dict[int, Any]:
        """Metadata of the topic, from this broker or any."""
        admin = self._admin if server is None else AdminClient({**_QUIET, "bootstrap.servers": server})
        found: dict[int, Any] = admin.list_topics(self.topic, timeout=10).topics[self.topic].partitions
        return found

    def led(self) -> dict[int, tuple[int, int]]:
        """The leader of each partition, and its epoch."""
        wanted = (MetadataRequestTopic(name=self.topic),)
        with RawClient(self._servers[0]) as client:
            [topic] = client.ask(MetadataRequest(topics=wanted), version=9).topics
        return {each.partition_index: (each.leader_id, each.leader_epoch) for each in topic.partitions}

    def controller(self) -> int:
        with RawClient(self._servers[0]) as client:
            return client.ask(MetadataRequest(topics=()), version=9).controller_id

    def in_sync(self) -> dict[int, int]:
        return {index: len(each.isrs) for index, each in self.partitions().items()}

    def leader(self, partition: int = 0) -> int:
        until(lambda: self.partitions()[partition].leader >= 0, "a leader")
        leader: int = self.partitions()[partition].leader
        return leader

    def wait_until_in_sync(self, count: int) -> None:
        until(lambda: all(len(each.isrs) == count for each in self.partitions().values()), f"{count} replicas in sync")


class Writer:
    """Sends numbered records to every partition in turn until stopped; then waits for records in flight."""

    name: str

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.acknowledged = 0
        self._numbers = [0] * trial.partitions
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.name)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._is_over.set()
        self._thread.join(_PATIENCE_S * 4)
        assert not self._thread.is_alive(), f"{self.name} does not end"

    def wait_for_more(self, count: int = 100) -> None:
        """Wait until this many more records are acknowledged, so that it has found the current leader."""
        goal = self.acknowledged + count
        until(lambda: self.acknowledged >= goal, f"{self.name} to be acknowledged")

    def _run(self) -> None:
        turn = 0
        while not self._is_over.is_set():
            partition = turn % self.trial.partitions
            sent = Sent(self.name, self._numbers[partition], partition)
            self._numbers[partition] += 1
            turn += 1
            self.trial.history.sends(sent)
            self.send(sent)
            time.sleep(_PACE_S)
        self.finish()

    def send(self, sent: Sent) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        raise NotImplementedError

    def done(self, sent: Sent, offset: int) -> None:
        self.acknowledged += 1
        self.trial.history.acknowledges(sent, offset)


class ConfluentWriter(Writer):
    """librdkafka's idempotent producer."""

    name = "confluent"
    is_idempotent = True

    def __init__(self, trial: Trial) -> None:
        super().__init__(trial)
        self._producer = Producer(
            {
                **_QUIET,
                "bootstrap.servers": trial.servers,
                "enable.idempotence": self.is_idempotent,
                "acks": "all",
                "linger.ms": 2,
                "request.timeout.ms": _ANSWERED_WITHIN_MS,
                "socket.timeout.ms": _ANSWERED_WITHIN_MS + 2_000,
                "delivery.timeout.ms": _DELIVERED_WITHIN_MS,
            }
        )

    def send(self, sent: Sent) -> None:
        def told(error: Any, message: Any) -> None:
            if error is None:
                self.done(sent, UNTOLD if message.offset() is None else message.offset())
            else:
                self.trial.history.fails(sent, str(error))

        self._producer.produce(self.trial.topic, sent.value.encode(), partition=sent.partition, on_delivery=told)
        self._producer.poll(0)

    def finish(self) -> None:
        assert self._producer.flush(_PATIENCE_S * 3) == 0


class PlainWriter(ConfluentWriter):
    """A producer without idempotence, which does not detect lost records."""

    name = "plain"
    is_idempotent = False


class OttlaWriter(Writer):
    """The producer of `ottla.client`."""

    name = "ottla"

    def __init__(self, trial: Trial) -> None:
        super().__init__(trial)
        self._producer: ottla.Producer[bytes, bytes] = ottla.Producer(
            trial.servers,
            producer_batch_timeout_ms=2,
            request_timeout_ms=_ANSWERED_WITHIN_MS,
            delivery_timeout_ms=_DELIVERED_WITHIN_MS,
        )
        self._waiting: list[tuple[Sent, Any]] = []

    def send(self, sent: Sent) -> None:
        self._waiting.append(
            (sent, self._producer.send(self.trial.topic, sent.value.encode(), partition=sent.partition))
        )
        while self._waiting and self._is_settled(*self._waiting[0], timeout_s=0):
            self._waiting.pop(0)

    def _is_settled(self, sent: Sent, delivery: Any, timeout_s: float) -> bool:
        try:
            self.done(sent, delivery.result(timeout_s).offset)
        except RequestTimedOut:
            return False
        except ClientError as failed:
            self.trial.history.fails(sent, str(failed))
        return True

    def finish(self) -> None:
        for sent, delivery in self._waiting:
            assert self._is_settled(sent, delivery, _PATIENCE_S * 3)
        self._producer.close()


class Reader:
    """Reads every partition from the beginning until stopped."""

    name = "reader"

    def __init__(self, trial: Trial) -> None:
        self._history = trial.history
        self._consumer = Consumer(
            {
                **_QUIET,
                "bootstrap.servers": trial.servers,
                "group.id": self.name,
                "enable.auto.commit": False,
                "isolation.level": "read_uncommitted",
                "auto.offset.reset": "error",
            }
        )
        self._consumer.assign(trial.places())
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.name)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._is_over.set()
        self._thread.join(_PATIENCE_S)

    def _run(self) -> None:
        while not self._is_over.is_set():
            found = self._consumer.consume(1000, timeout=0.2)
            good = [each for each in found if each.error() is None]
            self._history.read(Read(self.name, each.partition(), each.offset(), each.value().decode()) for each in good)
        self._consumer.close()


def read_all(trial: Trial) -> dict[int, dict[int, str]]:
    """The final records by partition and offset."""
    logs: dict[int, dict[int, str]] = {index: {} for index in range(trial.partitions)}
    consumer = Consumer({**_QUIET, "bootstrap.servers": trial.servers, "group.id": "end", "enable.auto.commit": False})
    try:
        ends = [end_of(consumer, place) for place in trial.places()]
        consumer.assign(trial.places())
        deadline_s = time.monotonic() + _PATIENCE_S
        while any(max(logs[index], default=-1) + 1 < end for index, end in enumerate(ends)):
            assert time.monotonic() < deadline_s, "the end was never reached"
            for message in consumer.consume(1000, timeout=0.2):
                if message.error() is None:
                    logs[message.partition()][message.offset()] = message.value().decode()  # type: ignore[index]
    finally:
        consumer.close()
    return logs


def under_load(trial: Trial, writers: list[Writer], faults: Callable[[list[Writer]], None]) -> None:
    """Run clients while faults happen; stop when all make progress again."""
    reader = Reader(trial)
    for each in (*writers, reader):
        each.start()  # type: ignore[attr-defined]
    try:
        for writer in writers:
            writer.wait_for_more()
        faults(writers)
        for writer in writers:
            writer.wait_for_more()
    finally:
        for each in (*writers, reader):
            each.end()  # type: ignore[attr-defined]
