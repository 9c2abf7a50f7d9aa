"""Processes that are stopped for longer than their session lasts, and go on."""

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
    """It leaves the ISR, and joins again when it has caught up."""
    leaders = {leader for leader, _ in faults.placed.led().values()}
    node = next(each for number, each in faults.nodes.items() if number != min(leaders))
    _freeze(faults, node)
    time.sleep(_LONG_S)
    for writer in writers:
        writer.wait_for_more()
    _thaw(faults, node)
    faults.wait_until_in_sync()


def freeze_in_turn(faults: Faults, writers: list[Writer]) -> None:
    """One goes on when the next is stopped, so that each of them has missed elections."""
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
    """All sessions end. Who goes on first must not lead by what it knew."""
    for node in faults.nodes.values():
        _freeze(faults, node)
    time.sleep(_LONG_S)
    for node in faults.nodes.values():
        _thaw(faults, node)
    for writer in writers:
        writer.wait_for_more()
    faults.wait_until_in_sync()


def freeze_leader_and_kill_its_successor(faults: Faults, writers: list[Writer]) -> None:
    """The old leader goes on when the new one is dead: the third one leads, not the old one by what it has."""
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
