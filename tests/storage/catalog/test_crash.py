"""Killed processes: acknowledged changes survive, others are applied completely or not at all."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ottla.core.ids import TopicId
from ottla.storage.catalog.database import CATALOG_FILE
from ottla.storage.catalog.sqlite import SqliteCatalog

from .writer import CONFIGS

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

KILLS = 40
WRITER = Path(__file__).with_name("writer.py")


def said_until_killed(folder: Path, lines: int) -> list[list[str]]:
    """What a writer acknowledged before it was killed, some time after this many lines."""
    with subprocess.Popen([sys.executable, str(WRITER), str(folder)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        said += process.stdout.readlines()
    assert process.returncode == -signal.SIGKILL
    return [line.decode().split() for line in said if line.endswith(b"\n")]


@dataclass
class Acknowledged:
    producer_ids: list[range] = field(default_factory=list)
    created: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)

    def note(self, what: str, first: str, second: str) -> None:
        if what == "ids":
            self.producer_ids.append(range(int(first), int(first) + int(second)))
        elif what == "created":
            self.created[first] = second
        elif what == "deleting":
            # From here until it is acknowledged, either may be found.
            del self.created[first]
        else:
            self.deleted.add(first)

    def check(self, folder: Path) -> None:
        with closing(SqliteCatalog.open(folder)) as catalog:
            held = catalog.view.topics
        assert self.created.items() <= {name: str(topic.id) for name, topic in held.items()}.items()
        assert not self.deleted & held.keys()
        for topic in held.values():
            assert topic.configs == CONFIGS
            assert topic.partitions == 3


def test_a_writer_killed_many_times_loses_nothing_and_hands_out_no_producer_id_twice(tmp_path: Path) -> None:
    chance = random.Random(5)
    acknowledged = Acknowledged()
    for kill in range(1, KILLS + 1):
        for said in said_until_killed(tmp_path, lines=chance.randint(1, 30)):
            acknowledged.note(*said)
        # Not every time: most writers must find the write-ahead log as the one before left it.
        if kill % 10 == 0:
            acknowledged.check(tmp_path)

    blocks = sorted(acknowledged.producer_ids, key=lambda ids: ids.start)
    assert len(blocks) >= KILLS
    assert all(ids.stop <= later.start for ids, later in pairwise(blocks))


def killed_at_call(number: int, prepare: Callable[[], Callable[[], object]]) -> bool:
    """Prepare, then act, in a child that dies at its n-th call while it acts; False if it got through."""
    child = os.fork()
    if child == 0:
        # What other tests left to be collected would be counted among its calls.
        gc.disable()
        act = prepare()
        calls = count(1)

        def strike(_frame: FrameType, event: str, _arg: object) -> None:
            # Only C calls change files.
            if event == "c_call" and next(calls) == number:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(strike)
        act()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0
        return False
    return True


def test_killed_at_any_step_of_its_creation_a_catalog_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    for step in count(1):
        folder = tmp_path / str(step)
        folder.mkdir()
        if not killed_at_call(step, partial(partial, SqliteCatalog.open, folder)):
            break
        with closing(SqliteCatalog.open(folder)) as catalog:
            assert catalog.next_producer_ids().first == 0
        assert [path.name for path in folder.iterdir()] == [CATALOG_FILE]
    assert step > 50


@pytest.mark.parametrize("act", ["create", "delete"])
def test_killed_at_any_step_of_a_change_a_topic_is_there_whole_or_not_at_all(tmp_path: Path, act: str) -> None:
    outcomes: list[bool] = []
    for step in count(1):
        name = f"topic-{step}"
        if act == "delete":
            with closing(SqliteCatalog.open(tmp_path)) as catalog:
                catalog.create_topic(name, 3, CONFIGS)
        was_killed = killed_at_call(step, partial(prepare_change, tmp_path, act, name))
        with closing(SqliteCatalog.open(tmp_path)) as catalog:
            topic = catalog.view.topics.get(name)
        assert topic is None or topic.configs == CONFIGS
        outcomes.append(topic is not None)
        if not was_killed:
            break
    # It takes effect at one step, and for good.
    assert outcomes == sorted(outcomes, reverse=act == "delete")
    assert set(outcomes) == {True, False}


def prepare_change(folder: Path, act: str, name: str) -> Callable[[], object]:
    catalog = SqliteCatalog.open(folder)
    if act == "create":
        # Drawn here: now and then it takes another try, and every step must mean the same call.
        return partial(catalog.create_topic, name, 3, CONFIGS, topic_id=TopicId.random())
    return partial(catalog.delete_topic, catalog.view.topic(name).id)
