"""A model of replication with the real election rules, where disks lose records."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from ottla.cluster.election import StartingReplica, has_its_folder, in_sync_there, returned, settle, with_isr, without
from ottla.cluster.state import NO_NODE, BrokerInfo

from .world import NODES, Entry, Node, World

if TYPE_CHECKING:
    from ottla.cluster.state import PartitionState


class LosingWorld(World):
    """A topic with min.insync.replicas = 2. Records may be lost once no replica that may lead has all of them."""

    min_insync = 2

    def __init__(self) -> None:
        self._epochs = count(1)
        self._folders = count()
        self.folders = {number: f"folder {next(self._folders)}" for number in NODES}
        self.registered = dict(self.folders)
        """The folder with which each broker that has a session registered."""
        super().__init__()
        self.returning: dict[int, StartingReplica] = {}
        """The log that a stopped node will find when it starts."""
        self.damaged: set[int] = set()
        """The nodes that have lost records, until they join the ISR again or lead."""
        self.state = replace(self.state, folders=tuple(self.folders.items()))
        for node in self.nodes:
            node.broker_epoch = next(self._epochs)
        for number in NODES:
            self.learn(number)

    @property
    def present(self) -> dict[int, int]:
        return {number: self.nodes[number].broker_epoch for number in self.registered}

    @property
    def brokers(self) -> dict[int, BrokerInfo]:
        return {
            number: BrokerInfo(number, {}, epoch=epoch, folder=self.registered[number])
            for number, epoch in self.present.items()
        }

    @property
    def entitled(self) -> set[int]:
        """The replicas eligible to lead, now or when they return."""
        return {
            number
            for number in (*self.state.isr, *self.state.eligible)
            if has_its_folder(self.state, number, self.folders[number])
        }

    def put(self, state: PartitionState) -> None:
        if state != self.state:
            self.state = replace(state, version=self.state.version + 1)

    # The catalog and its controller

    def decide(self) -> None:
        self.put(settle(self.state, self.brokers))

    def expire(self, number: int) -> None:
        self.registered.pop(number, None)
        self.decide()

    def register_again(self, number: int) -> None:
        """Register again in a new session of the same process."""
        if self.nodes[number].is_alive and number not in self.registered:
            self.nodes[number].broker_epoch = next(self._epochs)
            self.registered[number] = self.folders[number]
            self.decide()

    def write_proposal(self, number: int, *, is_answered: bool) -> None:
        rules = self.nodes[number].leading
        if rules is None or rules.proposed is None or number not in self.registered:
            return
        if (rules.version, rules.leader_epoch, number) != (
            self.state.version,
            self.state.leader_epoch,
            self.state.leader,
        ):
            return
        epochs, present = rules.epochs_of(rules.proposed), self.present
        wanted = {each for each in rules.proposed if each in self.state.isr or (present.get(each) == epochs[each])} | {
            number
        }
        isr = tuple(each for each in self.state.replicas if each in wanted)
        self.damaged -= {each for each in isr if each not in self.state.isr and self.nodes[each].is_alive}
        after = with_isr(self.state, isr, self.brokers, rules.lost)
        self.state = replace(after, version=self.state.version + 1)
        if is_answered:
            rules.changed(self.state)
            self._advance(self.nodes[number])

    def elect(self, number: int) -> None:
        if number in in_sync_there(self.state, self.brokers):
            super().elect(number)

    # Faults

    def stop(self, number: int) -> None:
        """Stop cleanly."""
        if self.nodes[number].is_alive and number in self.registered:
            self.put(without(self.state, number, self.brokers))
            super().crash(number)
            self.expire(number)

    def crash(self, number: int, *, high_watermark_lost: int = 0) -> None:
        if self.nodes[number].is_alive:
            super().crash(number, high_watermark_lost=high_watermark_lost)
            self.returning[number] = StartingReplica(self.folders[number])

    def lose_power(self, number: int, entries: int) -> None:
        """The last records were not synced, or the folder is an older copy of itself."""
        self.crash(number)
        node = self.nodes[number]
        if not node.is_alive:
            self._lose(node, node.log[: max(0, node.end - entries)])
            is_empty = self.returning.get(number, StartingReplica("")).is_empty
            self.returning[number] = StartingReplica(self.folders[number], is_empty, may_lack_records=True)

    def lose_disk(self, number: int) -> None:
        self.crash(number)
        node = self.nodes[number]
        if not node.is_alive:
            self._lose(node, [])
            self.folders[number] = f"folder {next(self._folders)}"
            self.returning[number] = StartingReplica(self.folders[number], is_empty=True)

    def _lose(self, node: Node, kept: list[Entry]) -> None:
        node.log = kept
        node.high_watermark = min(node.high_watermark, node.end)
        self.damaged.add(node.number)
        entitled = self.entitled
        if entitled <= self.damaged:
            # No complete copy is left, and it is unknown which replica has most records.
            self.acknowledged = {
                offset: entry
                for offset, entry in self.acknowledged.items()
                if entitled and all(self._has(each, offset, entry) for each in entitled)
            }
            self.read = {}

    def _has(self, number: int, offset: int, entry: Entry) -> bool:
        log = self.nodes[number].log
        return offset < len(log) and log[offset] == entry

    def restart(self, number: int, *, is_wiped: bool = False) -> None:  # noqa: ARG002 - see `lose_disk`
        node = self.nodes[number]
        if node.is_alive:
            return
        found = self.returning.pop(number, None)
        if found is not None:
            self.put(returned(self.state, number, found, self.brokers))
        self.expire(number)
        node.is_alive = True
        node.broker_epoch = next(self._epochs)
        node.registered = self.state.leader_epoch
        node.state = self.state
        self.registered[number] = self.folders[number]
        self.decide()

    # Invariants

    def check(self) -> None:
        leader = self.state.leader
        if leader != NO_NODE and self.nodes[leader].is_alive:
            assert self._has_all(leader), f"node {leader} leads and lacks a committed record"
            self.damaged.discard(leader)
        for number in self.entitled - self.damaged:
            assert self._has_all(number), f"node {number} may lead and lacks a committed record"

    def _has_all(self, number: int) -> bool:
        return all(self._has(number, offset, entry) for offset, entry in self.acknowledged.items())

    def settle(self) -> None:
        for number in NODES:
            self.restart(number)
            self.register_again(number)
        for _ in range(40):
            for number in NODES:
                self.learn(number)
                self.receive(number)
                self.fetch(number, most=1000)
                self.receive(number)
                self.write_proposal(number, is_answered=True)
            self.tick(1)
