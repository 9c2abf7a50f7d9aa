"""SIGKILL at random times under load, and at every system call of a script.

Outcome: every acknowledged batch is there at its offset with its bytes, offsets have no gaps, a batch that was not
acknowledged is there as a whole or not at all, the start does not go back, and a producer that repeats its last
batches is recognised.
"""

from __future__ import annotations

import os
import random
import select
import shutil
import signal
import time
from typing import TYPE_CHECKING

import pytest

from ottla.core.clock import ManualClock
from ottla.storage.folder.data_dir import DataDir

from .encrypting import EncryptedDataDir
from .history import History
from .killing import KILLED, fork, kill_at, wait
from .making import ROUNDS, leave
from .writer import CONFIG, IDEMPOTENT, PARTITIONS, PLAIN, TRANSACTIONAL, Writer, follow_script, next_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .killing import Moment

RANDOM_KILLS = int(120 * ROUNDS)


def collect(reading: int, until: float) -> bytes:
    """Read a pipe until a deadline, or until it is closed."""
    received = b""
    while (left := until - time.monotonic()) > 0 and select.select([reading], [], [], left)[0]:
        data = os.read(reading, 1 << 16)
        if not data:
            break
        received += data
    return received


def whole_lines(received: bytes) -> list[bytes]:
    return received.split(b"\n")[:-1]


def run_reporting(work: Callable[[Callable[[bytes], object]], None], life_s: float) -> tuple[list[bytes], int]:
    """Run `work` in a process that is killed after this time; returns its report and exit status."""
    reading, writing = os.pipe()
    pid = fork(lambda: work(lambda line: os.write(writing, line)))
    os.close(writing)
    try:
        received = collect(reading, time.monotonic() + life_s)
        os.kill(pid, signal.SIGKILL)
        status = wait(pid)
        received += collect(reading, time.monotonic() + 60)
    finally:
        os.close(reading)
    return whole_lines(received), status


def open_again(folder: Path, kind: type[DataDir]) -> DataDir:
    data_dir = kind(folder, ManualClock())
    for at in PARTITIONS:
        data_dir.open_partition(at, CONFIG)
    return data_dir


def hold_to(history: History, folder: Path, kind: type[DataDir] = DataDir, *, is_left: bool) -> None:
    """Recover, compare, and let each producer resend its last batches and send its next one."""
    data_dir = open_again(folder, kind)
    history.must_be(data_dir)
    for at, log in data_dir.logs.items():
        partition = history.partition(str(at))
        for producer_id in (IDEMPOTENT, TRANSACTIONAL):
            known = next_of(log, producer_id)
            sent = [
                b for b in partition.batches if b.data is not None and b.data[43:51] == producer_id.to_bytes(8, "big")
            ]
            if sent and sent[-1].data is not None:
                repeated = log.append(bytearray(sent[-1].data))
                assert repeated.is_duplicate
                assert repeated.base_offset == sent[-1].base_offset
                assert known.sequence > 0
    assert_goes_on(history, data_dir)
    leave(data_dir) if is_left else data_dir.close()


def assert_goes_on(history: History, data_dir: DataDir) -> None:
    """Appending works after every recovery, for known and new producers."""
    reported: list[bytes] = []
    writer = Writer.__new__(Writer)
    writer.data_dir, writer.report, writer.config = data_dir, reported.append, CONFIG
    for at in PARTITIONS:
        for producer_id in (PLAIN, IDEMPOTENT, TRANSACTIONAL):
            writer.append(at, b"next", 1, producer_id)
    history.learn(reported)
    for at, log in data_dir.logs.items():
        history.partition(str(at)).must_be(log)


@pytest.mark.parametrize(("kind", "kills"), [(DataDir, RANDOM_KILLS), (EncryptedDataDir, RANDOM_KILLS // 4)])
def test_a_writer_killed_hundreds_of_times_loses_nothing(tmp_path: Path, kind: type[DataDir], kills: int) -> None:
    chance = random.Random(20)
    history = History()
    for number in range(kills):
        life_s = 0.0002 * 1000 ** chance.random()  # from 0.2 to 200 ms, short lives as often as long ones
        seed = chance.random()
        lines, status = run_reporting(
            lambda report, seed=seed: Writer(tmp_path, report, kind=kind).go_on_for_ever(random.Random(seed)), life_s
        )
        assert status == KILLED
        history.learn(lines)
        hold_to(history, tmp_path, kind, is_left=number % 2 == 0)
    assert history.acknowledged > 5 * kills, "too few appends for the kills to prove anything"


@pytest.fixture
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill does not lose the page cache, so fsync is skipped; it still counts as a system call."""
    monkeypatch.setattr(os, "fsync", os.fstat)


@pytest.mark.usefixtures("no_waiting_for_the_disk")
def test_a_writer_killed_at_every_system_call_loses_nothing(in_memory: Path) -> None:
    calls = list_calls(in_memory / "counted")
    assert len(calls) > 250, "the script does too little"
    assert {"open", "pwrite", "rename", "replace", "ftruncate", "truncate", "fsync", "unlink", "mkdir"} <= set(calls)
    for number, name in enumerate(calls, 1):
        for moment in ("before", "torn") if name == "pwrite" else ("before",):
            folder = in_memory / f"{number}-{moment}"
            lines, status = follow_until_killed(folder, number, moment)
            assert status == KILLED
            history = History()
            history.learn(lines)
            hold_to(history, folder, is_left=True)
            shutil.rmtree(folder)


def list_calls(folder: Path) -> list[str]:
    """The modifying system calls of the script, by name."""
    reading, writing = os.pipe()

    def work() -> None:
        kill_at(0, "before", lambda name: os.write(writing, name.encode() + b"\n"))
        follow_script(Writer(folder, lambda _: None))

    pid = fork(work)
    os.close(writing)
    with os.fdopen(reading) as lines:
        names = lines.read().split()
    assert wait(pid) == 0
    return names


def follow_until_killed(folder: Path, number: int, moment: Moment) -> tuple[list[bytes], int]:
    def work(report: Callable[[bytes], object]) -> None:
        kill_at(number, moment)
        follow_script(Writer(folder, report))

    reading, writing = os.pipe()
    try:
        pid = fork(lambda: work(lambda line: os.write(writing, line)))
        os.close(writing)
        received = collect(reading, time.monotonic() + 60)
        return whole_lines(received), wait(pid)
    finally:
        os.close(reading)
