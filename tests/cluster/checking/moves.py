"""Reassignments that are redirected and cancelled while nodes are killed."""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING, Final

from tests.broker.raw_client import RawClient

from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)

from .processes import until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .faults import Faults
    from .load import Writer
    from .processes import Node

_ROUNDS: Final = 8
FACTOR: Final = 2
SEED: Final = int(os.environ.get("MOVES_SEED", "1"))


def move_redirect_and_cancel_under_kills(faults: Faults, writers: list[Writer]) -> None:
    """Move two replicas of each partition around three nodes while one node after the other is killed."""
    chance = random.Random(SEED)
    for _ in range(_ROUNDS):
        _move_all(faults, chance, None)
        time.sleep(chance.random() * 0.5)
        node = chance.choice(list(faults.nodes.values()))
        faults.history.event(f"kill -9 of node {node.number}")
        node.kill()
        _move_all(faults, chance, node)
        time.sleep(chance.random() * 3)
        _move_all(faults, chance, node)
        faults.history.event(f"node {node.number} starts")
        node.start()
        node.wait_until_ready()
        for writer in writers:
            writer.wait_for_more()
    until(lambda: _is_settled(faults), "all moves to end", 60)


def _move_all(faults: Faults, chance: random.Random, away: Node | None) -> None:
    """Move each partition to other nodes, or back."""
    asked = chance.choice([node for node in faults.nodes.values() if node is not away])
    for index in range(len(faults.partitions(asked))):
        target = None if chance.random() < 0.4 else tuple(chance.sample(sorted(faults.nodes), FACTOR))
        _move(faults, asked, index, target)


def _move(faults: Faults, asked: Node, index: int, target: Sequence[int] | None) -> None:
    wanted = ReassignablePartition(partition_index=index, replicas=None if target is None else tuple(target))
    topic = ReassignableTopic(name=faults.placed.topic, partitions=(wanted,))
    with RawClient(asked.address) as client:
        answer = client.ask(AlterPartitionReassignmentsRequest(timeout_ms=5000, topics=(topic,)), version=0)
    told = answer.responses[0].partitions[0]
    what = "moves back" if target is None else f"moves to {target}"
    faults.history.event(f"partition {index} {what}: {told.error_code} {told.error_message or ''}")


def _is_settled(faults: Faults) -> bool:
    return all(len(each.replicas) == FACTOR and set(each.isrs) == set(each.replicas) for each in faults.partitions())
