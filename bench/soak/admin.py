"""Creates, grows, reconfigures and deletes topics during the load."""

from __future__ import annotations

from concurrent.futures import Future
from random import Random

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from bench.soak.ledger import Ledger

MIB = 1 << 20
ANSWER_S = 5
SETUP_S = 30
MOST_PARTITIONS = 8
MOST_SCRATCH_TOPICS = 10
TOPICS = {
    NewTopic("orders", 4, 1, config={"segment.bytes": str(4 * MIB)}): 4,
    NewTopic("growing", 1, 1): 1,
    NewTopic("expiring", 2, 1, config={"segment.bytes": str(MIB), "retention.bytes": str(MIB)}): 2,
}
NAMES = tuple(topic.topic for topic in TOPICS)
EXPIRING = "expiring"


class Admin:
    def __init__(self, address: str, ledger: Ledger, rng: Random) -> None:
        self._client = AdminClient({"bootstrap.servers": address, "log_level": 0, "reconnect.backoff.max.ms": 500})
        self._ledger = ledger
        self._rng = rng
        self._made = 0

    def create_topics(self) -> None:
        for future in self._client.create_topics(list(TOPICS)).values():
            future.result(SETUP_S)
        for topic, partitions in TOPICS.items():
            self._ledger.topics[topic.topic] = True
            self._ledger.partitions[topic.topic] = partitions

    def do_something(self) -> None:
        self._rng.choice((self._create, self._create, self._delete, self._reconfigure, self._grow))()

    def _create(self) -> None:
        if sum(exists is not False for exists in self._ledger.topics.values()) > MOST_SCRATCH_TOPICS:
            self._delete()
            return
        name = f"scratch-{self._made}"
        self._made += 1
        self._ledger.topics[name] = None
        [future] = self._client.create_topics([NewTopic(name, self._rng.randrange(1, 5), 1)]).values()
        if self._is_done(future):
            self._ledger.topics[name] = True

    def _delete(self) -> None:
        names = [name for name, exists in self._ledger.topics.items() if exists and name.startswith("scratch")]
        if names:
            name = self._rng.choice(names)
            self._ledger.topics[name] = None
            [future] = self._client.delete_topics([name]).values()
            if self._is_done(future):
                self._ledger.topics[name] = False

    def _reconfigure(self) -> None:
        segment_bytes = ConfigEntry(
            "segment.bytes", str(self._rng.randrange(MIB, 8 * MIB)), incremental_operation=AlterConfigOpType.SET
        )
        resource = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=[segment_bytes])
        [future] = self._client.incremental_alter_configs([resource]).values()
        self._is_done(future)

    def _grow(self) -> None:
        partitions = self._ledger.partitions["growing"] + 1
        if partitions <= MOST_PARTITIONS:
            [future] = self._client.create_partitions([NewPartitions("growing", partitions)]).values()
            # Where an earlier answer was lost, this is refused, and the number is learned from the next one.
            self._is_done(future)
            self._ledger.partitions["growing"] = self._count_partitions("growing")

    def _count_partitions(self, topic: str) -> int:
        try:
            return len(self._client.list_topics(topic, timeout=ANSWER_S).topics[topic].partitions)
        except KafkaException:
            return self._ledger.partitions[topic]

    def _is_done(self, future: Future[None]) -> bool:
        try:
            future.result(ANSWER_S)
        except (KafkaException, TimeoutError):
            self._ledger.count("admin calls refused")
            return False
        self._ledger.count("admin calls")
        return True

    def existing(self) -> dict[str, int]:
        """The topics there are, and how many partitions each has."""
        listed = self._client.list_topics(timeout=SETUP_S).topics
        return {name: len(topic.partitions) for name, topic in listed.items()}
