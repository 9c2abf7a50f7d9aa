"""Transactional producers of different clients."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaException, Producer

import ottla
from ottla.client.errors import ClientError
from ottla.client.group.interface import Committed, GroupProgress
from ottla.core.ids import TopicPartition

from .stories import Fate
from .transacting import PATIENCE_S, QUIET, SOURCE, Scene, Worker

if TYPE_CHECKING:
    from .stories import Story

_CALL_S: Final = 6.0
"""The timeout of a call to an unresponsive broker."""
_TIMEOUT_MS: Final = 20_000


class ConfluentWorker(Worker):
    """librdkafka's producer. It commits no offsets: sending them to a lost coordinator hangs (2.16)."""

    is_always_new = False

    def __init__(self, scene: Scene, name: str, seed: int) -> None:
        super().__init__(scene, name, seed)
        self._producer: Producer | None = None

    def settle(self) -> None:
        self._renew()

    def _renew(self) -> Producer:
        """A new producer with the same id; the previous one is abandoned."""
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            producer = Producer(
                {
                    **QUIET,
                    "bootstrap.servers": self.scene.servers,
                    "transactional.id": self.transactional_id,
                    "transaction.timeout.ms": _TIMEOUT_MS,
                    # Timeouts for a silent broker: of records, and of other requests.
                    "request.timeout.ms": 3000,
                    "socket.timeout.ms": 4000,
                    "linger.ms": 1,
                }
            )
            try:
                producer.init_transactions(_CALL_S)
            except KafkaException:
                assert time.monotonic() < deadline_s, f"{self.name} cannot begin"
            else:
                self._producer = producer
                return producer

    def transact(self) -> None:
        producer = self._producer or self._renew()
        story = self.begins()
        if self.is_always_new:
            self._producer = None
        try:
            self._write(producer, story)
        except KafkaException as failed:
            self._abort(producer, story, str(failed))
            return
        choice = self.pick.random()
        if choice < self.commits:
            self._commit(producer, story)
        elif choice < (self.commits + 1) / 2:
            self._abort(producer, story, "by choice")
        else:
            self.scene.stories.becomes(story, Fate.GONE, "left open")
            self._producer = None

    def _write(self, producer: Producer, story: Story) -> None:
        producer.begin_transaction()
        for partition in self.places():
            producer.produce(self.scene.topic, story.next_value(partition).encode(), partition=partition)
        producer.flush(_CALL_S)
        self.is_about_to_end = True
        time.sleep(self.pause_s)
        self.is_about_to_end = False

    def _commit(self, producer: Producer, story: Story) -> None:
        self.scene.stories.becomes(story, Fate.UNKNOWN, "is to be committed")
        try:
            producer.commit_transaction(_CALL_S)
        except KafkaException as failed:
            if failed.args[0].txn_requires_abort():
                self._abort(producer, story, str(failed))
            else:
                self._producer = None
            return
        self.is_committed(story)

    def _abort(self, producer: Producer, story: Story, why: str) -> None:
        """An acknowledged abort is final, whatever was requested before."""
        try:
            producer.abort_transaction(_CALL_S)
        except KafkaException:
            self._producer = None
        else:
            self.scene.stories.becomes(story, Fate.GONE, why)


class PausingWorker(ConfluentWorker):
    """Uses a new producer for each transaction, which waits before the commit."""

    pause_s = 0.5
    is_always_new = True
    commits = 1.0


class OttlaWorker(Worker):
    """The producer of `ottla.client`, which commits offsets in every second transaction."""

    def __init__(self, scene: Scene, name: str, seed: int) -> None:
        super().__init__(scene, name, seed)
        self._producer: ottla.Producer[bytes, bytes] | None = None

    def settle(self) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                with self._started().transaction():
                    pass
            except ClientError:
                assert time.monotonic() < deadline_s, f"{self.name} cannot end"
                self._forget()
            else:
                self._forget()
                return

    def _started(self) -> ottla.Producer[bytes, bytes]:
        if self._producer is None:
            self._producer = ottla.Producer(
                self.scene.servers,
                transactional_id=self.transactional_id,
                transaction_timeout_ms=_TIMEOUT_MS,
                request_timeout_ms=4000,
            )
        return self._producer

    def _forget(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(ClientError):
                producer.close()

    def transact(self) -> None:
        story = self.begins()
        try:
            producer = self._started()
            with producer.transaction():
                self._write(producer, story)
                self._abort_some()
                self.scene.stories.becomes(story, Fate.UNKNOWN, "is to be committed")
        except _Aborted:
            self.scene.stories.becomes(story, Fate.GONE, "by choice")
        except ClientError as failed:
            self.scene.stories.becomes(story, story.fate, str(failed))
            self._forget()
        else:
            self.is_committed(story)

    def _write(self, producer: ottla.Producer[bytes, bytes], story: Story) -> None:
        for partition in self.places():
            producer.send(self.scene.topic, story.next_value(partition).encode(), partition=partition)
        if story.number % 2:
            story.moved_to = story.number
            moved = {TopicPartition(SOURCE, 0): Committed(story.number)}
            producer.send_offsets(GroupProgress(self.name, moved))

    def _abort_some(self) -> None:
        if self.pick.random() >= self.commits:
            raise _Aborted


class _Aborted(Exception):  # noqa: N818 - not an error
    """Raised to abort a transaction."""
