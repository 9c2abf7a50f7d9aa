"""A model of the replication rules: crashing replicas, late messages, a controller, and no network."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ottla.cluster.replication.following import Restart, Truncate, followed_high_watermark, truncation_point
from ottla.cluster.replication.following import when_out_of_range as out_of_range
from ottla.cluster.replication.leading import Leading
from ottla.cluster.state import NO_NODE, PartitionState
from ottla.core.ids import TopicId
from ottla.storage.leader_epochs import LeaderEpochs

NODES = (0, 1, 2)
LAG_MS = 1000


class Entry(NamedTuple):
    epoch: int
    value: int


class Answer(NamedTuple):
    """A fetch response in flight from leader to follower."""

    leader_epoch: int
    from_offset: int
    entries: list[Entry]
    high_watermark: int
    diverging: tuple[int, int] | None = None
    bounds: tuple[int, int] | None = None
    """The range of the leader's log, if the requested offset is out of range."""


class Node:
    def __init__(self, number: int, state: PartitionState) -> None:
        self.number = number
        self.log: list[Entry] = []
        self.high_watermark = 0
        self.is_alive = True
        self.registered = 0
        """The leader epoch that was the newest when this node (re)started: it leads only in a later one."""
        self.state = state
        self.leading: Leading | None = None
        self.answer: Answer | None = None
        self.broker_epoch = -1

    @property
    def end(self) -> int:
        return len(self.log)

    @property
    def epochs(self) -> LeaderEpochs:
        epochs = LeaderEpochs()
        for offset, entry in enumerate(self.log):
            epochs.begin(entry.epoch, offset)
        return epochs


class World:
    min_insync = 1

    def __init__(self) -> None:
        self.now_ms = 0
        self.state = PartitionState(TopicId(bytes(range(16))), "t", 0, NODES, 0, 1, NODES, 1, min_isr=self.min_insync)
        self.nodes = [Node(number, self.state) for number in NODES]
        self.next_value = 0
        self.acknowledged: dict[int, Entry] = {}
        self.parked: dict[int, list[int]] = {number: [] for number in NODES}
        self.read: dict[int, Entry] = {}
        for node in self.nodes:
            self.learn(node.number)

    @property
    def present(self) -> dict[int, int]:
        """The registered brokers and their epochs."""
        return {each.number: each.broker_epoch for each in self.nodes if each.is_alive}

    # Actions of brokers

    def learn(self, number: int) -> None:
        """The node receives the newest state."""
        node, state = self.nodes[number], self.state
        if not node.is_alive:
            return
        is_new_epoch = state.leader_epoch > node.state.leader_epoch or node.leading is None
        node.state = state
        if state.leader == number and state.leader_epoch > node.registered:
            if is_new_epoch:
                self.parked[number] = []
                node.leading = Leading(state, node.end, node.high_watermark, lag_ms=LAG_MS, now_ms=self.now_ms)
            else:
                node.leading.changed(state)
            node.leading.present = self.present
            self._advance(node)
        else:
            node.leading = None
            self.parked[number] = []

    def append(self, number: int) -> None:
        node = self.nodes[number]
        if node.leading is not None and node.leading.has_enough(self.min_insync):
            node.log.append(Entry(node.leading.leader_epoch, self.next_value))
            self.next_value += 1
            self.parked[number].append(node.end - 1)
            self._advance(node)

    def fetch(self, number: int, most: int) -> None:
        """A follower's fetch arrives at the node that it considers leader, and the response is in flight."""
        node = self.nodes[number]
        if not node.is_alive or node.leading is not None or node.state.leader in (NO_NODE, number):
            return
        leader = self.nodes[node.state.leader]
        if leader.leading is None or leader.leading.leader_epoch != node.state.leader_epoch:
            return
        offset = node.end
        last_epoch = node.log[-1].epoch if node.log else -1
        node.answer = self._answer(leader, offset, last_epoch, most)
        if node.answer.diverging is None and node.answer.bounds is None:
            leader.leading.fetched(number, offset, 0, leader.end, self.now_ms, node.broker_epoch)
            self._advance(leader)
            joined = leader.leading.with_joining(number, 0)
            if joined is not None:
                leader.leading.propose(joined)

    def _answer(self, leader: Node, offset: int, last_epoch: int, most: int) -> Answer:
        rules = leader.leading
        assert rules is not None
        if last_epoch >= 0:
            epoch, end = leader.epochs.end_of(last_epoch, leader.end)
            if epoch < 0:
                return Answer(rules.leader_epoch, offset, [], 0, bounds=(0, leader.end))
            if epoch != last_epoch or end < offset:
                return Answer(rules.leader_epoch, offset, [], 0, diverging=(epoch, end))
        if offset > leader.end:
            return Answer(rules.leader_epoch, offset, [], 0, bounds=(0, leader.end))
        return Answer(rules.leader_epoch, offset, leader.log[offset : offset + most], rules.high_watermark)

    def receive(self, number: int) -> None:
        """The response arrives, unless the follower has changed its leader."""
        node = self.nodes[number]
        answer, node.answer = node.answer, None
        if answer is None or not node.is_alive or node.leading is not None:
            return
        if answer.leader_epoch != node.state.leader_epoch or answer.from_offset != node.end:
            return
        if answer.diverging is not None:
            point = truncation_point(node.epochs, node.end, *answer.diverging)
            assert point < node.end, "truncation must terminate"
            del node.log[point:]
        elif answer.bounds is not None:
            match out_of_range(node.end, *answer.bounds):
                case Truncate(to):
                    del node.log[to:]
                case Restart(at):
                    assert at == 0
                    node.log.clear()
        else:
            node.log += answer.entries
        node.high_watermark = min(node.high_watermark, node.end)
        node.high_watermark = followed_high_watermark(node.high_watermark, answer.high_watermark, node.end)

    def _advance(self, node: Node) -> None:
        rules = node.leading
        assert rules is not None
        rules.advance(node.end, self.now_ms)
        node.high_watermark = rules.high_watermark
        for offset in [each for each in self.parked[node.number] if each < rules.high_watermark]:
            self.parked[node.number].remove(offset)
            self.acknowledged[offset] = node.log[offset]
        for offset in range(rules.high_watermark):
            assert self.read.setdefault(offset, node.log[offset]) == node.log[offset], "a read record has changed"

    def tick(self, ms: int) -> None:
        self.now_ms += ms
        for node in self.nodes:
            if node.leading is not None:
                self._advance(node)
                kept = node.leading.without_late(node.end, self.now_ms)
                if kept is not None:
                    node.leading.propose(kept)

    def write_proposal(self, number: int, *, is_answered: bool) -> None:
        """An ISR proposal reaches the catalog; its response may be lost."""
        rules = self.nodes[number].leading
        if rules is None or rules.proposed is None:
            return
        is_current = rules.version == self.state.version and rules.leader_epoch == self.state.leader_epoch
        if is_current and self.state.leader == number:
            self.state = replace(self.state, isr=tuple(sorted(rules.proposed)), version=self.state.version + 1)
            if is_answered:
                rules.changed(self.state)
                self._advance(self.nodes[number])

    # Faults

    def crash(self, number: int, *, high_watermark_lost: int = 0) -> None:
        """The process crashes, and its files stay. The catalog does not know yet."""
        node = self.nodes[number]
        node.is_alive = False
        node.leading = None
        node.answer = None
        self.parked[number] = []
        node.high_watermark = max(0, node.high_watermark - high_watermark_lost)

    def expire(self, number: int) -> None:
        """A session ends: the controller elects another leader, or none."""
        isr = tuple(each for each in self.state.isr if each != number) or self.state.isr
        leader = self.state.leader
        epoch = self.state.leader_epoch
        if leader == number:
            alive = [each for each in isr if each != number and self.nodes[each].is_alive]
            leader, epoch = (alive[0] if alive else NO_NODE), epoch + 1
        self.state = replace(self.state, isr=isr, leader=leader, leader_epoch=epoch, version=self.state.version + 1)

    def restart(self, number: int, *, is_wiped: bool = False) -> None:
        node = self.nodes[number]
        if node.is_alive:
            return
        if is_wiped:
            node.log.clear()
            node.high_watermark = 0
        self.expire(number)
        node.is_alive = True
        node.registered = self.state.leader_epoch
        node.state = self.state

    def elect(self, number: int) -> None:
        """The controller moves leadership to an available member of the ISR."""
        if number in self.state.isr and self.nodes[number].is_alive and self.state.leader != number:
            self.state = replace(
                self.state,
                leader=number,
                leader_epoch=self.state.leader_epoch + 1,
                version=self.state.version + 1,
            )

    # Invariants

    def check(self) -> None:
        for number in self.state.isr:
            log = self.nodes[number].log
            for offset, entry in self.acknowledged.items():
                assert offset < len(log), f"node {number} is in sync and lacks {entry} at {offset}"
                assert log[offset] == entry, f"node {number} is in sync and has {log[offset]} in place of {entry}"

    def settle(self) -> None:
        """All nodes return and no more faults happen: the logs converge."""
        for number in NODES:
            self.restart(number)
        if self.state.leader == NO_NODE:
            self.elect(self.state.isr[0])
        for _ in range(40):
            for number in NODES:
                self.learn(number)
                self.receive(number)
                self.fetch(number, most=1000)
                self.receive(number)
                self.write_proposal(number, is_answered=True)
            self.tick(1)
