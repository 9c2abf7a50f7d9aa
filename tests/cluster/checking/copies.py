"""One partition on chosen nodes of a cluster, its acknowledged records, and which of them can be read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.broker.raw_client import RawClient

from ottla.core import ids
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

from .ends import end_of
from .processes import until

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ottla.wire.messages.alter_partition_reassignments import ReassignablePartitionResponse

    from .processes import Processes

_QUIET: Final = {"log_level": 0}
_PATIENCE_S: Final = 30.0


class Seen(NamedTuple):
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Copies:
    """Partition 0 of a topic."""

    def __init__(self, processes: Processes, topic: str, replicas: Sequence[int], **configs: str) -> None:
        self._processes = processes
        self.topic = topic
        self.at = ids.TopicPartition(topic, 0)
        self.acknowledged: list[str] = []
        admin = AdminClient({**_QUIET, "bootstrap.servers": self._running()})
        wanted = NewTopic(topic, num_partitions=1, replica_assignment=[list(replicas)], config=configs)
        _create(admin, wanted)

    def _running(self) -> str:
        return ",".join(self._processes.nodes[number].address for number in self._awake())

    def _awake(self) -> list[int]:
        nodes = self._processes.nodes
        return [number for number, node in nodes.items() if node.is_running and not node.is_frozen]

    def write(self, count: int = 50) -> None:
        """Produce with acks=all, and wait until all records are acknowledged."""
        producer = Producer({**_QUIET, "bootstrap.servers": self._running(), "acks": "all"})
        failed: list[object] = []

        def told(error: Any, message: Any) -> None:
            if error is None:
                self.acknowledged.append(message.value().decode())
            else:
                failed.append(error)

        first = len(self.acknowledged)
        for number in range(first, first + count):
            producer.produce(self.topic, str(number).encode(), partition=0, on_delivery=told)
        assert producer.flush(_PATIENCE_S) == 0
        assert not failed

    def lost(self) -> set[str]:
        """The missing acknowledged records, according to the current leader."""
        until(lambda: self.seen(self._awake()[0]).leader >= 0, f"a leader of {self.at}")
        consumer = Consumer({**_QUIET, "bootstrap.servers": self._running(), "group.id": "end"})
        found: set[str] = set()
        try:
            place = TopicPartition(self.topic, 0, OFFSET_BEGINNING)
            end = end_of(consumer, place)
            consumer.assign([place])
            until(lambda: _take(consumer, found) >= end, "the end of the log")
        finally:
            consumer.close()
        return set(self.acknowledged) - found

    def seen(self, by: int) -> Seen:
        """The partition's metadata, as returned by this node."""
        with RawClient(self._processes.nodes[by].address) as client:
            told = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=self.topic),)), version=9)
        [partition] = told.topics[0].partitions
        return Seen(partition.leader_id, partition.replica_nodes, partition.isr_nodes)

    def wait_for(self, by: int, *, leader: int, isr: Collection[int]) -> None:
        until(
            lambda: self.seen(by).leader == leader and set(self.seen(by).isr) == set(isr),
            f"leader {leader} and ISR {isr} of {self.at}",
        )

    def move(self, target: Sequence[int] | None, by: int) -> ReassignablePartitionResponse:
        """Reassign replicas through this node; any node accepts the request."""
        wanted = ReassignablePartition(partition_index=0, replicas=None if target is None else tuple(target))
        topic = ReassignableTopic(name=self.topic, partitions=(wanted,))
        with RawClient(self._processes.nodes[by].address) as client:
            answer = client.ask(AlterPartitionReassignmentsRequest(topics=(topic,)), version=0)
        return answer.responses[0].partitions[0]


def _take(consumer: Consumer, found: set[str]) -> int:
    """Add new records to the rest; returns the next offset."""
    for message in consumer.consume(1000, timeout=0.2):
        if message.error() is None:
            found.add(message.value().decode())
    [place] = consumer.position(consumer.assignment())
    offset: int = place.offset
    return offset


def _create(admin: AdminClient, wanted: NewTopic) -> None:
    until_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            admin.create_topics([wanted])[wanted.topic].result(_PATIENCE_S)
        except KafkaException as refused:
            # The controller may not know yet that a replica's broker is back.
            is_absent = refused.args[0].code() == KafkaError.INVALID_REPLICA_ASSIGNMENT
            if not is_absent or time.monotonic() > until_s:
                raise
        else:
            return
