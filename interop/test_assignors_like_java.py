"""Our assignors and Kafka's on the same random groups: every member gets the same partitions."""

import random
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from interop.foreign_clients import CLIENTS
from interop.kafka_artifacts import KafkaArtifacts
from ottla.client.group.assignors.known import ASSIGNORS
from ottla.client.group.assignors.subjects import Assignor, Layout, Member, Shares
from ottla.core.ids import TopicPartition
from ottla.wire.consumer_protocol import (
    Subscription,
    by_topic,
    decode_assignment,
    each_partition,
    encode_subscription,
)

CASES = 400
REBALANCES = 4
TIMEOUT_S = 120
JAVA_CLASSES = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


class Group:
    """A group that changes: members come and go, topics grow, subscriptions change."""

    def __init__(self, pick: random.Random, assignor: Assignor) -> None:
        self._pick = pick
        self._assignor = assignor
        self._racks = [f"rack{n}" for n in range(pick.choice([0, 0, 2, 3]))]
        self._are_alike = pick.random() < 0.5
        self._next_id = 0
        self.layout: dict[str, list[frozenset[str]]] = {}
        self.members: list[Member] = []
        self._generation = 0
        for _ in range(pick.randint(1, 4)):
            self._add_topic()
        for _ in range(pick.randint(1, 5)):
            self._join()

    def change(self, shares: Shares) -> None:
        self._generation += 1
        self.members = [self._with(member, shares[member.id], self._generation) for member in self.members]
        for _ in range(self._pick.randint(1, 2)):
            self._pick.choice([self._join, self._leave, self._add_topic, self._grow, self._lag])()

    def _with(self, member: Member, share: list[TopicPartition], generation: int) -> Member:
        return replace(
            member,
            owned=tuple(sorted(share)) if self._assignor.is_cooperative else (),
            generation=generation,
            user_data=self._assignor.user_data(share, generation),
        )

    def _join(self) -> None:
        self._next_id += 1
        name = f"{self._pick.choice('abcxyz')}-{self._pick.getrandbits(64):x}-{self._next_id}"
        instance = f"instance-{self._next_id}" if self._pick.random() < 0.2 else None
        rack = self._pick.choice(["", *self._racks]) if self._racks else ""
        user_data = self._assignor.user_data(None, -1)
        self.members.append(
            Member(id=name, instance_id=instance, topics=self._topics(), rack=rack, user_data=user_data)
        )

    def _topics(self) -> frozenset[str]:
        if self._are_alike and self.members:
            return self.members[0].topics
        known = sorted(self.layout)
        return frozenset(self._pick.sample(known, self._pick.randint(1, len(known))))

    def _leave(self) -> None:
        if len(self.members) > 1:
            self.members.pop(self._pick.randrange(len(self.members)))

    def _add_topic(self) -> None:
        self.layout[f"topic-{self._pick.getrandbits(32):x}"] = [
            self._partition() for _ in range(self._pick.choice([1, 2, 3, 3, 6, 17]))
        ]

    def _grow(self) -> None:
        self.layout[self._pick.choice(sorted(self.layout))].append(self._partition())

    def _lag(self) -> None:
        """A member was away for a generation."""
        at = self._pick.randrange(len(self.members))
        late = self.members[at]
        self.members[at] = self._with(late, list(late.owned), max(late.generation - 1, -1))

    def _partition(self) -> frozenset[str]:
        return frozenset(self._pick.sample(self._racks, self._pick.randint(1, len(self._racks))) if self._racks else ())


def cases(assignor: Assignor) -> Iterator[tuple[Layout, list[Member], Shares]]:
    """What each group was, before each of its rebalances, and what we make of it."""
    for seed in range(CASES):
        group = Group(random.Random(seed), assignor)
        for _ in range(REBALANCES):
            shares = assignor.assign(group.members, group.layout)
            yield {topic: list(racks) for topic, racks in group.layout.items()}, list(group.members), shares
            group.change(shares)


def as_text(assignor: Assignor, layout: Layout, members: list[Member]) -> str:
    lines = [f"CASE org.apache.kafka.clients.consumer.{JAVA_CLASSES[assignor.name]}"]
    for topic, partitions in layout.items():
        lines.append(" ".join(["TOPIC", topic, *(",".join(sorted(racks)) or "-" for racks in partitions)]))
    for member in members:
        subscription = Subscription(
            topics=tuple(sorted(member.topics)),
            user_data=member.user_data,
            owned_partitions=by_topic(member.owned),
            generation_id=member.generation,
            rack_id=member.rack or None,
        )
        lines.append(f"MEMBER {member.id} {member.instance_id or '-'} {encode_subscription(subscription).hex()}")
    return "\n".join([*lines, "END\n"])


def answers(told: str) -> Iterator[Shares]:
    shares: Shares = {}
    for line in told.splitlines():
        if line == "END":
            yield shares
            shares = {}
        else:
            member, data = line.split(" ")
            shares[member] = sorted(each_partition(decode_assignment(bytes.fromhex(data)).assigned_partitions))


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_every_member_gets_the_same_partitions_as_in_java(kafka: KafkaArtifacts, name: str) -> None:
    assignor = ASSIGNORS[name]
    asked = list(cases(assignor))
    text = "".join(as_text(assignor, layout, members) for layout, members, _ in asked)
    done = subprocess.run(
        kafka.command(str(CLIENTS / "java" / "Assign.java"), [], "-Xmx256m"),
        input=text,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr

    theirs = list(answers(done.stdout))
    assert len(theirs) == len(asked)
    for (layout, members, ours), of_java in zip(asked, theirs, strict=True):
        assert {member: sorted(share) for member, share in ours.items()} == of_java, (layout, members)
