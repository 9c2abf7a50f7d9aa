"""Faults of a cluster: each function injects one and waits until it is over."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .networks import Way
from .processes import SESSION_MS, until

if TYPE_CHECKING:
    from ottla.cluster.server import ZooKeeperServer

    from .history import History
    from .load import Placed, Writer
    from .processes import Node, Processes


class Faults:
    def __init__(self, processes: Processes, placed: Placed, history: History, zookeeper: ZooKeeperServer) -> None:
        self.nodes = processes.nodes
        self.network = processes.network
        self.links = processes.links
        self.placed = placed
        self.history = history
        self.zookeeper = zookeeper

    def leader(self) -> Node:
        """The leader of partition 0."""
        until(lambda: self.partitions()[0].leader >= 0, "a leader")
        return self.nodes[self.partitions()[0].leader]

    def back(self, node: Node) -> None:
        self.history.event(f"node {node.number} starts")
        node.start()
        node.wait_until_ready()
        self.wait_until_in_sync()

    def wait_until_in_sync(self, count: int | None = None) -> None:
        wanted = len(self.nodes) if count is None else count
        until(lambda: all(len(each.isrs) == wanted for each in self.partitions()), f"{wanted} replicas in sync")

    def partitions(self, by: Node | None = None) -> list[Any]:
        """Leader, replicas and ISR of each partition, in order, according to this node or any responsive one."""
        by = by or next(node for node in self.nodes.values() if node.is_running and not node.is_frozen)
        return [each for _, each in sorted(self.placed.partitions(by.address).items())]

    def kill_leader(self, writers: list[Writer]) -> None:
        """kill -9, and restart when others have taken over."""
        leader = self.leader()
        self.history.event(f"kill -9 of node {leader.number}")
        leader.kill()
        for writer in writers:
            writer.wait_for_more()
        self.back(leader)

    def kill_leader_of_frozen_followers(self, _writers: list[Writer]) -> None:
        """Records that the leader accepts now are not replicated before it dies."""
        leader = self.leader()
        followers = [node for node in self.nodes.values() if node is not leader]
        for node in followers:
            node.freeze()
        self.history.event(f"all but node {leader.number} are frozen")
        time.sleep(0.3)
        leader.kill()
        self.history.event(f"kill -9 of node {leader.number}")
        for node in followers:
            node.thaw()
        self.back(leader)

    def freeze_leader(self, writers: list[Writer]) -> None:
        """Freeze it for longer than its session: it wakes up believing that it is still leader."""
        leader = self.leader()
        self.history.event(f"node {leader.number} is frozen")
        leader.freeze()
        time.sleep(SESSION_MS / 1000 * 2)
        for writer in writers:
            writer.wait_for_more()
        self.history.event(f"node {leader.number} goes on")
        leader.thaw()
        self.wait_until_in_sync()

    def restart_in_turn(self, writers: list[Writer]) -> None:
        """A rolling restart, in order."""
        for node in self.nodes.values():
            self.history.event(f"node {node.number} stops")
            node.stop()
            for writer in writers:
                writer.wait_for_more()
            self.back(node)

    def kill_in_turn(self, writers: list[Writer]) -> None:
        for node in self.nodes.values():
            self.history.event(f"kill -9 of node {node.number}")
            node.kill()
            for writer in writers:
                writer.wait_for_more()
            self.back(node)

    def wipe_follower(self, writers: list[Writer]) -> None:
        leader = self.leader()
        node = next(each for each in self.nodes.values() if each is not leader)
        self.history.event(f"node {node.number} loses its disk")
        node.kill()
        node.wipe()
        self.back(node)
        for writer in writers:
            writer.wait_for_more()

    def damage_follower(self, writers: list[Writer]) -> None:
        """Corrupt bytes in the middle of its log before it restarts."""
        leader = self.leader()
        node = next(each for each in self.nodes.values() if each is not leader)
        self.history.event(f"the records of node {node.number} are damaged")
        node.kill()
        for segment in node.folder.glob(f"{self.placed.topic}-*/*.log"):
            data = bytearray(segment.read_bytes())
            data[len(data) // 2 : len(data) // 2 + 100] = bytes(100)
            segment.write_bytes(data)
        self.back(node)
        for writer in writers:
            writer.wait_for_more()

    def fill_disk(self, writers: list[Writer]) -> None:
        """Fill the disk of a node that leads no partition of this topic; its folder is on a separate file system."""
        leaders = {self.placed.leader(index) for index in self.placed.partitions()}
        node = next(each for number, each in self.nodes.items() if number not in leaders)
        filler = node.folder / "filler"
        self.history.event(f"the disk of node {node.number} is full")
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
        for writer in writers:
            writer.wait_for_more(2000)
        assert all(node.number not in each.isrs for each in self.placed.partitions().values())
        filler.unlink()
        self.history.event("there is room again")
        self.wait_until_in_sync()

    def restart_zookeeper(self, writers: list[Writer]) -> None:
        """Stop it for longer than sessions last: there is no leader until it is back."""
        self.history.event("kill -9 of ZooKeeper")
        self.zookeeper.kill()
        time.sleep(SESSION_MS / 1000 * 1.5)
        self.zookeeper.start()
        self.history.event("ZooKeeper is back")
        for writer in writers:
            writer.wait_for_more()
        self.wait_until_in_sync()

    def cut_leader_from_followers(self, writers: list[Writer]) -> None:
        """All nodes reach ZooKeeper, but the leader reaches no other node: the ISR is too small, so nothing is
        acknowledged."""
        assert self.network is not None
        leader = self.leader().number
        self._cut(self.network.ways_between(leader, self.nodes.keys() - {leader}), 5.0)
        for writer in writers:
            writer.wait_for_more()

    def cut_one_way(self, writers: list[Writer]) -> None:
        """Packets from followers reach the leader, but not the other way round."""
        leader = self.leader()
        self._cut([Way(leader.number, node.host) for node in self.nodes.values() if node is not leader], 5.0)
        for writer in writers:
            writer.wait_for_more()

    def cut_followers_one_way(self, writers: list[Writer]) -> None:
        """Packets from the leader reach its followers, but not the other way round."""
        leader = self.leader()
        self._cut([Way(node.number, leader.host) for node in self.nodes.values() if node is not leader], 5.0)
        for writer in writers:
            writer.wait_for_more()

    def cut_one_follower_one_way(self, writers: list[Writer]) -> None:
        """The follower leaves the ISR, and the others continue without it."""
        leader = self.leader()
        node = next(each for each in self.nodes.values() if each is not leader)
        self._cut([Way(leader.number, node.host)], 5.0)
        for writer in writers:
            writer.wait_for_more()

    def cut_in_a_ring(self, writers: list[Writer]) -> None:
        """Each node can send to one of the others only, in a ring."""
        nodes = list(self.nodes.values())
        self._cut([Way(one.number, next_.host) for one, next_ in zip(nodes, [*nodes[1:], nodes[0]], strict=True)], 5.0)
        for writer in writers:
            writer.wait_for_more()

    def cut_controller_from_zookeeper(self, writers: list[Writer]) -> None:
        """Its packets do not reach ZooKeeper; another node becomes controller."""
        assert self.network is not None
        self._cut([Way(self.placed.controller(), self.network.host)], SESSION_MS / 1000 * 3)
        for writer in writers:
            writer.wait_for_more()

    def cut_leader_from_zookeeper(self, writers: list[Writer]) -> None:
        """Followers and clients still reach the old leader while another one is elected."""
        assert self.network is not None
        self._cut([Way(self.leader().number, self.network.host)], SESSION_MS / 1000 * 3)
        for writer in writers:
            writer.wait_for_more()

    def _cut(self, ways: list[Way], seconds: float) -> None:
        assert self.network is not None
        self.history.event(f"cut: {ways}")
        with self.network.cut(ways):
            time.sleep(seconds)
        self.history.event("the network is whole again")
        self.wait_until_in_sync()

    def slow_all_links(self, writers: list[Writer]) -> None:
        """Between clients, nodes and ZooKeeper; then a leader dies while they are slow."""
        assert self.links is not None
        self.history.event("every link is slow")
        self.links.delay_s = 0.15
        for writer in writers:
            writer.wait_for_more()
        self.wait_until_in_sync()
        leader = self.leader()
        self.history.event(f"kill -9 of node {leader.number}")
        leader.kill()
        for writer in writers:
            writer.wait_for_more()
        self.back(leader)
        self.links.delay_s = 0.0
        self.history.event("links are fast again")
        for writer in writers:
            writer.wait_for_more()

    def jump_clocks(self, writers: list[Writer]) -> None:
        """Clock jumps of an hour, both ways, at leaders: no other leader is elected, and nothing expires."""
        before = self.placed.led()
        for seconds in (3600, -3600, 0):
            for number in {leader for leader, _ in before.values()}:
                clock = self.nodes[number].clock
                assert clock is not None
                self.history.event(f"the clock of node {number} is {seconds} s off")
                clock.jump(seconds)
            # Longer than a session, and several runs of retention.
            time.sleep(SESSION_MS / 1000 * 1.5)
            for writer in writers:
                writer.wait_for_more()
            assert self.placed.led() == before
            assert self.placed.in_sync() == {index: len(self.nodes) for index in before}

    def kill_all(self, _writers: list[Writer]) -> None:
        """Kill all processes at once; the page cache survives."""
        self.history.event("kill -9 of all")
        for node in self.nodes.values():
            node.kill()
        for node in self.nodes.values():
            node.start()
        for node in self.nodes.values():
            node.wait_until_ready()
        self.wait_until_in_sync()
