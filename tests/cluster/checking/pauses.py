"""Processes paused for longer than their session."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from .processes import SESSION_MS

if TYPE_CHECKING:
    from .faults import Faults
    from .load import Writer
    from .processes import Node

_LONG_S: Final = SESSION_MS / 1000 * 2


def _freeze(faults: Faults, node: Node) -> None:
    faults.history.event(f"node {node.number} is frozen")
    node.freeze()


def _thaw(faults: Faults, node: Node) -> None:
    faults.history.event(f"node {node.number} goes on")
    node.thaw()


def freeze_follower(faults: Faults, writers: list[Writer]) -> None:
    """The follower leaves the ISR, and rejoins when it has caught up."""
    leaders = {leader for leader, _ in faults.placed.led().values()}
    node = next(each for number, each in faults.nodes.items() if number != min(leaders))
    _freeze(faults, node)
    time.sleep(_LONG_S)
    for writer in writers:
        writer.wait_for_more()
    _thaw(faults, node)
    faults.wait_until_in_sync()


def freeze_in_turn(faults: Faults, writers: list[Writer]) -> None:
    """Resume one node when the next is paused, so that each misses elections."""
    frozen: Node | None = None
    for node in faults.nodes.values():
        _freeze(faults, node)
        if frozen is not None:
            _thaw(faults, frozen)
        time.sleep(_LONG_S)
        for writer in writers:
            writer.wait_for_more()
        frozen = node
        faults.wait_until_in_sync(len(faults.nodes) - 1)
    assert frozen is not None
    _thaw(faults, frozen)
    faults.wait_until_in_sync()


def freeze_all(faults: Faults, writers: list[Writer]) -> None:
    """All sessions expire. The first node to resume must not lead by its outdated state."""
    for node in faults.nodes.values():
        _freeze(faults, node)
    time.sleep(_LONG_S)
    for node in faults.nodes.values():
        _thaw(faults, node)
    for writer in writers:
        writer.wait_for_more()
    faults.wait_until_in_sync()


def freeze_leader_and_kill_its_successor(faults: Faults, writers: list[Writer]) -> None:
    """The old leader resumes when the new one is dead: the third must lead, not the old one by its outdated state."""
    leader = faults.leader()
    _freeze(faults, leader)
    time.sleep(_LONG_S)
    for writer in writers:
        writer.wait_for_more()
    successor = faults.leader()
    faults.history.event(f"kill -9 of node {successor.number}")
    successor.kill()
    _thaw(faults, leader)
    for writer in writers:
        writer.wait_for_more()
    faults.back(successor)


PAUSES: Final = [freeze_follower, freeze_in_turn, freeze_all, freeze_leader_and_kill_its_successor]
