"""Power cuts under a file queue.

Outcome: with `fsync = "push"` every message whose push has returned is there, in order, and nothing counts as damaged;
with "batch" at least those up to the last sync.
"""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

import pytest

from ottla.queue import Queue, files, part_writer

from .making import ROUNDS
from .power import Recorder

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.queue import Damage
    from ottla.queue.config import Fsync

STATES = int(150 * ROUNDS)
OPENINGS = 3
PUSHES = 25


@pytest.fixture
def recorder(in_memory: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder(in_memory / "disk")
    monkeypatch.setattr(files, "write_some", recorder.pwrite)
    for module in (files, part_writer):
        monkeypatch.setattr(module, "sync", recorder.fsync)
    return recorder


def push_some(recorder: Recorder, folder: Path, fsync: Fsync, chance: random.Random) -> tuple[list[bytes], list[int]]:
    """The pushed messages, and when each was promised to be on disk."""
    pushed: list[bytes] = []
    times: list[int] = []
    with recorder.recording():
        for _ in range(OPENINGS):
            with Queue(folder, "q", fsync=fsync, part_bytes=3000, batch_messages=5) as queue:
                for _ in range(PUSHES):
                    bodies = [b"%d " % (len(pushed) + number) * chance.randrange(1, 200) for number in range(3)]
                    if chance.random() < 0.3:
                        queue.push_many(bodies)
                    else:
                        bodies = bodies[:1]
                        queue.push(bodies[0])
                    pushed += bodies
                    if fsync == "push" or len(bodies) > 1:
                        times += [recorder.now] * (len(pushed) - len(times))
            times += [recorder.now] * (len(pushed) - len(times))
    return pushed, times


@pytest.mark.parametrize("fsync", ["push", "batch"])
def test_synced_messages_survive_a_power_cut(
    recorder: Recorder, in_memory: Path, monkeypatch: pytest.MonkeyPatch, fsync: Fsync
) -> None:
    chance = random.Random(f"power {fsync}")
    pushed, times = push_some(recorder, in_memory / "disk", fsync, chance)
    monkeypatch.undo()
    for _ in range(STATES):
        moment = chance.randrange(recorder.now + 1)
        left = in_memory / "left"
        recorder.lay_out(moment, chance, left)
        damages: list[Damage] = []
        with Queue(left, "q", fsync="never") as queue, queue.reader("earliest", on_damage=damages.append) as reader:
            found = [message.body for message in reader]
        durable = sum(time <= moment for time in times)
        if fsync == "push":
            assert found == pushed[: len(found)], moment
            assert damages == [], moment
            assert len(found) >= durable, moment
        else:
            assert found[:durable] == pushed[:durable], moment
        shutil.rmtree(left)
