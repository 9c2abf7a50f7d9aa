"""A consumer group whose members come and go, and a watcher of its committed offsets."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from random import Random

from confluent_kafka import Consumer, KafkaException, TopicPartition

from bench.soak.ledger import At, Ledger
from bench.soak.verify import check_commits

GROUP = "soak"
MEMBERS = 2
"""That many are always there; one more comes and goes."""
COMMIT_EVERY_S = 0.5
CATCH_UP_S = 60


def new_consumer(address: str, **settings: object) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": address,
            "log_level": 0,
            "group.id": GROUP,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "reconnect.backoff.max.ms": 500,
            **settings,
        }
    )


class Member(threading.Thread):
    def __init__(self, address: str, topics: Iterable[str], ledger: Ledger) -> None:
        super().__init__(name="member", daemon=True)
        self._address = address
        self._topics = list(topics)
        self._ledger = ledger
        self._leaving = threading.Event()

    def leave(self) -> None:
        self._leaving.set()

    def run(self) -> None:
        consumer = new_consumer(self._address)
        consumer.subscribe(self._topics, on_assign=lambda *_: self._ledger.count("assignments"))
        last_commit_s = time.monotonic()
        while not self._leaving.is_set():
            messages = consumer.consume(500, timeout=0.2)
            self._ledger.count("consumed by the group", sum(message.error() is None for message in messages))
            if time.monotonic() - last_commit_s > COMMIT_EVERY_S:
                last_commit_s = time.monotonic()
                self._commit(consumer)
        self._commit(consumer)
        consumer.close()

    def _commit(self, consumer: Consumer) -> None:
        try:
            committed = consumer.commit(asynchronous=False)
        except KafkaException:
            # The broker is away, the group is rebalancing, or there is nothing to commit.
            self._ledger.count("commits refused")
            return
        for partition in committed or ():
            if partition.error is None and partition.offset >= 0:
                self._ledger.count("commits")
                self._ledger.committed(At(partition.topic, partition.partition), partition.offset)


class Group:
    def __init__(self, address: str, topics: Iterable[str], ledger: Ledger) -> None:
        self._new_member = lambda: Member(address, topics, ledger)
        self._members: list[Member] = []

    def start(self) -> None:
        while len(self._members) < MEMBERS:
            self._join()

    def _join(self) -> None:
        self._members.append(self._new_member())
        self._members[-1].start()

    def change(self, rng: Random) -> None:
        """One more, or one fewer."""
        if len(self._members) > MEMBERS:
            member = self._members.pop(rng.randrange(len(self._members)))
            member.leave()
            member.join(CATCH_UP_S)
        else:
            self._join()

    def stop(self) -> None:
        for member in self._members:
            member.leave()
        for member in self._members:
            member.join(CATCH_UP_S)


class CommitWatch:
    """Polls committed offsets: they must not be below acknowledged ones."""

    def __init__(self, address: str, ledger: Ledger) -> None:
        self.consumer = new_consumer(address)
        self._ledger = ledger
        self.seen: dict[At, int] = {}

    def look(self) -> None:
        floor = self._ledger.committed_so_far()
        wanted = [TopicPartition(at.topic, at.partition) for at in floor]
        if not wanted:
            return
        try:
            found = self.consumer.committed(wanted, timeout=5)
        except KafkaException:
            return
        seen = {At(each.topic, each.partition): each.offset for each in found if each.error is None}
        for violation in check_commits(floor, self.seen, seen):
            self._ledger.violated(violation)
        self.seen |= seen
        self._ledger.count("looks at commits")

    def await_end(self, ends: dict[At, int]) -> None:
        """Until the group has committed all there is."""
        deadline = time.monotonic() + CATCH_UP_S
        while True:
            self.look()
            behind = {at: end for at, end in ends.items() if self.seen.get(at, 0) < end}
            if not behind:
                return
            if time.monotonic() > deadline:
                self._ledger.violated(f"the group did not get to the end of {sorted(behind)}")
                return
            time.sleep(COMMIT_EVERY_S)

    def close(self) -> None:
        self.consumer.close()
