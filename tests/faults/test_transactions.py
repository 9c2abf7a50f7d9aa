"""Random transactions with broker kills: aborted records stay invisible, committed ones are not lost or torn.

TRANSACTION_ROUNDS makes it longer, TRANSACTION_SEED another.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest
from tests.broker import making
from tests.broker.raw_client import RawClient
from tests.broker.transacting import NEW, OLD
from tests.client.producer.reading import values
from tests.clients.processes import Server

import ottla
from ottla.core.ids import TopicPartition

from .transacting import DATA, PARTITIONS, SOURCE, Fate, Worker

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from .transacting import Story

ROUNDS = int(os.environ.get("TRANSACTION_ROUNDS", "3"))
SEED = int(os.environ.get("TRANSACTION_SEED", "1"))
STEPS = 120


@pytest.mark.timeout(60 + 20 * ROUNDS)
def test_transactions_are_atomic_despite_kills(tmp_path: Path) -> None:
    pick = random.Random(SEED)
    with Server(tmp_path / "data") as server:
        with RawClient(server.address) as client:
            making.create_topic(client, DATA, PARTITIONS)
            making.create_topic(client, SOURCE)
        workers = [Worker(server, f"worker-{number}", OLD if number % 2 else NEW, pick) for number in range(4)]
        for _ in range(ROUNDS):
            for _ in range(STEPS):
                pick.choice(workers).step()
            pick.choice(workers).commit_unheard(server)
            for worker in workers:
                worker.settle()
            seen = _read(server.address)
            stories = [story for worker in workers for story in worker.stories]
            _check(seen, stories)
            for worker in workers:
                _check_progress(server.address, worker, seen)
        assert len([story for story in stories if story.fate is Fate.COMMITTED]) > ROUNDS * 5


def _read(address: str) -> dict[int, list[bytes | None]]:
    return {partition: values(address, DATA, partition) for partition in range(PARTITIONS)}


def _check(seen: dict[int, list[bytes | None]], stories: Iterable[Story]) -> None:
    expected_of = {story_key(story): story for story in stories}
    for partition, found in seen.items():
        assert len(found) == len(set(found)), "a record is there twice"
        by_story: dict[bytes, list[bytes]] = {}
        for value in found:
            assert value is not None
            by_story.setdefault(value.rpartition(b":")[0], []).append(value)
        for key, there in by_story.items():
            story = expected_of[key]
            assert story.fate in (Fate.COMMITTED, Fate.UNKNOWN), f"{key!r} is {story.fate} and seen"
            assert there == story.written.get(partition, []), f"{key!r} is torn"
    for key, story in expected_of.items():
        parts = {partition: bool(_of(seen[partition], key)) for partition in story.written}
        if story.fate is Fate.COMMITTED:
            assert all(parts.values()), f"{key!r} was committed and is lost"
        assert len(set(parts.values())) <= 1, f"{key!r} is torn over partitions"


def story_key(story: Story) -> bytes:
    return f"{story.worker}:{story.number}".encode()


def _of(found: list[bytes | None], key: bytes) -> list[bytes]:
    return [value for value in found if value is not None and value.rpartition(b":")[0] == key]


def _check_progress(address: str, worker: Worker, seen: dict[int, list[bytes | None]]) -> None:
    """The group's offset is that of the last transaction whose records are visible."""
    moved = [
        story.moved_to
        for story in worker.stories
        if story.moved_to is not None and any(_of(found, story_key(story)) for found in seen.values())
    ]
    with ottla.Admin(address) as admin:
        found = admin.group_offsets(worker.name).get(TopicPartition(SOURCE, 0))
    assert (None if found is None else found.offset) == (moved[-1] if moved else None)
