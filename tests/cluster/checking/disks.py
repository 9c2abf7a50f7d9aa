"""Disk faults: wiped, replaced by an older copy, or failing for one partition of many."""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

from .processes import SESSION_MS, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .faults import Faults
    from .load import Writer
    from .processes import Node


def _more(writers: list[Writer]) -> None:
    for writer in writers:
        writer.wait_for_more()


def _beside(node: Node, name: str) -> Path:
    return node.folder.with_name(f"{node.folder.name}-{name}")


# Wiped, and older


def wipe_leader(faults: Faults, writers: list[Writer]) -> None:
    leader = faults.leader()
    faults.history.event(f"node {leader.number}, which leads, loses its disk")
    leader.kill()
    leader.wipe()
    _more(writers)
    faults.back(leader)


def wipe_in_turn(faults: Faults, writers: list[Writer]) -> None:
    """Replace every disk, one after the other."""
    for node in faults.nodes.values():
        faults.history.event(f"node {node.number} loses its disk")
        node.kill()
        node.wipe()
        faults.back(node)
        _more(writers)


def _replace_by_older(faults: Faults, writers: list[Writer], node: Node) -> None:
    older = _beside(node, "older")
    faults.history.event(f"the disk of node {node.number} is copied")
    node.stop()
    shutil.copytree(node.folder, older)
    faults.back(node)
    _more(writers)
    faults.history.event(f"node {node.number} comes back with the copy")
    node.kill()
    node.swap_disk(older)
    shutil.rmtree(older)
    faults.back(node)
    _more(writers)


def older_disk_of_follower(faults: Faults, writers: list[Writer]) -> None:
    leader = faults.leader()
    _replace_by_older(faults, writers, next(each for each in faults.nodes.values() if each is not leader))


def older_disks_in_turn(faults: Faults, writers: list[Writer]) -> None:
    for node in faults.nodes.values():
        _replace_by_older(faults, writers, node)


# Of the last in-sync replica: with min.insync.replicas=1


def wiped_disk_of_the_last_in_sync(faults: Faults, writers: list[Writer]) -> None:
    node = faults.leader()
    right = _beside(node, "right")
    _last_in_sync_dies(faults, writers, node)
    _wrong_disk_until_the_right_one_is_back(faults, node, right)


def older_disk_of_the_last_in_sync(faults: Faults, writers: list[Writer]) -> None:
    node = faults.leader()
    older = _beside(node, "older")
    faults.history.event(f"the disk of node {node.number} is copied")
    node.stop()
    shutil.copytree(node.folder, older)
    faults.back(node)
    _more(writers)
    _last_in_sync_dies(faults, writers, node)
    _wrong_disk_until_the_right_one_is_back(faults, node, older)


def _last_in_sync_dies(faults: Faults, writers: list[Writer], last: Node) -> None:
    """The killed node alone has the last acknowledged records."""
    for node in faults.nodes.values():
        if node is not last:
            faults.history.event(f"kill -9 of node {node.number}")
            node.kill()
    until(
        lambda: all(each.leader == last.number and each.isrs == [last.number] for each in faults.partitions()),
        "it to be the last in sync",
    )
    _more(writers)
    faults.history.event(f"kill -9 of node {last.number}, the last in sync")
    last.kill()


def _wrong_disk_until_the_right_one_is_back(faults: Faults, node: Node, other: Path) -> None:
    node.swap_disk(other)
    faults.history.event("all nodes start, and that one with a wrong disk")
    _start_all(faults)
    time.sleep(SESSION_MS / 1000)
    assert [each.leader for each in faults.partitions()] == [-1] * len(faults.partitions())
    node.stop()
    node.swap_disk(other)
    shutil.rmtree(other)
    faults.back(node)


def _start_all(faults: Faults) -> None:
    for node in faults.nodes.values():
        if not node.is_running:
            node.start()
    for node in faults.nodes.values():
        node.wait_until_ready()


# One partition of many: with the module `failing_disk`


@contextmanager
def _broken(faults: Faults, node: Node) -> Iterator[None]:
    """Make the stopped node unable to open partition 0 inside the block."""
    broken = node.folder / f"{faults.placed.topic}-0" / f"{0:020}.log"
    kept = _beside(node, "kept.log")
    broken.rename(kept)
    broken.mkdir()
    faults.history.event(f"node {node.number} cannot open partition 0")
    try:
        yield
    finally:
        broken.rmdir()
        kept.rename(broken)
        faults.history.event(f"node {node.number} can open partition 0 again")


def _only_partition_0_is_without(faults: Faults, node: Node) -> bool:
    first, *others = faults.partitions()
    return node.number not in first.isrs and all(len(each.isrs) == len(faults.nodes) for each in others)


def partition_that_a_follower_cannot_open(faults: Faults, writers: list[Writer]) -> None:
    leader = faults.leader()
    _cannot_open(faults, writers, next(each for each in faults.nodes.values() if each is not leader))


def partition_that_a_leader_cannot_open(faults: Faults, writers: list[Writer]) -> None:
    _cannot_open(faults, writers, faults.leader())


def _cannot_open(faults: Faults, writers: list[Writer], node: Node) -> None:
    node.kill()
    with _broken(faults, node):
        node.start()
        node.wait_until_ready()
        until(lambda: _only_partition_0_is_without(faults, node), "the other partitions to be in sync")
        _more(writers)
    faults.wait_until_in_sync()


def partition_whose_fsync_fails(faults: Faults, writers: list[Writer]) -> None:
    """EIO on one partition of its leader: another replica takes over; the other partitions are not affected."""
    leader = faults.leader()
    listed = leader.folder.with_name(f"{leader.folder.name}.eio")
    faults.history.event(f"fsync of partition 0 fails on node {leader.number}")
    listed.write_text(f"{faults.placed.topic}-0")
    until(lambda: _only_partition_0_is_without(faults, leader), "it to leave the ISR")
    _more(writers)
    assert faults.leader() is not leader
    listed.unlink()
    faults.history.event(f"node {leader.number} is restarted")
    leader.kill()
    faults.back(leader)


Happens: TypeAlias = "Callable[[Faults, list[Writer]], None]"

DISKS: Final[list[Happens]] = [wipe_leader, wipe_in_turn, older_disk_of_follower, older_disks_in_turn]
LAST_DISKS: Final[list[Happens]] = [wiped_disk_of_the_last_in_sync, older_disk_of_the_last_in_sync]
BROKEN: Final[list[Happens]] = [
    partition_that_a_follower_cannot_open,
    partition_that_a_leader_cannot_open,
    partition_whose_fsync_fails,
]
