"""What can befall a cluster, each as a function that lets it happen and waits until it is over."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .processes import SESSION_MS

if TYPE_CHECKING:
    from .history import History
    from .load import Placed, Writer
    from .processes import Node, Processes


class Faults:
    def __init__(self, processes: Processes, placed: Placed, history: History) -> None:
        self.nodes = processes.nodes
        self.placed = placed
        self.history = history

    def _leader(self) -> Node:
        return self.nodes[self.placed.leader()]

    def _back(self, node: Node) -> None:
        self.history.event(f"node {node.number} starts")
        node.start()
        node.wait_until_ready()
        self.placed.wait_until_in_sync(len(self.nodes))

    def kill_leader(self, writers: list[Writer]) -> None:
        """kill -9, and back when others have taken over."""
        leader = self._leader()
        self.history.event(f"kill -9 of node {leader.number}")
        leader.kill()
        for writer in writers:
            writer.wait_for_more()
        self._back(leader)

    def kill_leader_of_frozen_followers(self, _writers: list[Writer]) -> None:
        """What the leader takes now reaches nobody before it dies."""
        leader = self._leader()
        followers = [node for node in self.nodes.values() if node is not leader]
        for node in followers:
            node.freeze()
        self.history.event(f"all but node {leader.number} are frozen")
        time.sleep(0.3)
        leader.kill()
        self.history.event(f"kill -9 of node {leader.number}")
        for node in followers:
            node.thaw()
        self._back(leader)

    def freeze_leader(self, writers: list[Writer]) -> None:
        """For longer than its session lasts: it wakes up as one that believes to lead, and does not."""
        leader = self._leader()
        self.history.event(f"node {leader.number} is frozen")
        leader.freeze()
        time.sleep(SESSION_MS / 1000 * 2)
        for writer in writers:
            writer.wait_for_more()
        self.history.event(f"node {leader.number} goes on")
        leader.thaw()
        self.placed.wait_until_in_sync(len(self.nodes))

    def restart_in_turn(self, writers: list[Writer]) -> None:
        """A rolling restart, in order."""
        for node in self.nodes.values():
            self.history.event(f"node {node.number} stops")
            node.stop()
            for writer in writers:
                writer.wait_for_more()
            self._back(node)

    def kill_in_turn(self, writers: list[Writer]) -> None:
        for node in self.nodes.values():
            self.history.event(f"kill -9 of node {node.number}")
            node.kill()
            for writer in writers:
                writer.wait_for_more()
            self._back(node)

    def wipe_follower(self, writers: list[Writer]) -> None:
        leader = self._leader()
        node = next(each for each in self.nodes.values() if each is not leader)
        self.history.event(f"node {node.number} loses its disk")
        node.kill()
        node.wipe()
        self._back(node)
        for writer in writers:
            writer.wait_for_more()

    def kill_all(self, _writers: list[Writer]) -> None:
        """Everything at once, as when the power of a room fails; nothing but the page cache is left."""
        self.history.event("kill -9 of all")
        for node in self.nodes.values():
            node.kill()
        for node in self.nodes.values():
            node.start()
        for node in self.nodes.values():
            node.wait_until_ready()
        self.placed.wait_until_in_sync(len(self.nodes))
