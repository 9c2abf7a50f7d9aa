"""Several processes: one writer, many readers, and some that are killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import ottla
from ottla.queue import AlreadyOpen, Queue, part_writer, verify

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(ottla.__file__).parents[1])}

PUSHER = """
import sys
from ottla.queue import Queue
folder, fsync, first = sys.argv[1], sys.argv[2], int(sys.argv[3])
queue = Queue(folder, "q", fsync=fsync, part_bytes=2000)
number = first
while True:
    if number % 5:
        queue.push(b"%d" % number)
        number += 1
    else:
        queue.push_many([b"%d" % number, b"%d" % (number + 1)])
        number += 2
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""

POPPER = """
import sys
from ottla.queue import Queue
with Queue(sys.argv[1], "q", "read", fsync="never") as queue, queue.consumer("c", "earliest") as consumer:
    while True:
        for message in consumer.pop_many(7, timeout_ms=100):
            sys.stdout.write(message.text + "\\n")
        sys.stdout.flush()
        consumer.commit()
"""

HOLDER = """
import sys
from ottla.queue import Queue
queue = Queue(sys.argv[1], "q")
consumer = queue.consumer("c")
print("open", flush=True)
sys.stdin.read()
"""


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def kill_after(process: subprocess.Popen[str], lines: int) -> list[int]:
    """Kill the process some time after this many lines; returns all reported numbers."""
    assert process.stdout is not None
    told = [int(process.stdout.readline()) for _ in range(lines)]
    process.send_signal(signal.SIGKILL)
    told += [int(line) for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    process.communicate()
    return told


def read_all(folder: Path) -> list[int]:
    with Queue(folder, "q", "read") as queue, queue.consumer("all", "earliest", on_damage=pytest.fail) as reader:
        reader.seek("earliest")
        return [int(message.body) for message in reader]


@pytest.mark.parametrize("fsync", ["push", "batch", "never"])
def test_a_writer_killed_at_any_moment_loses_nothing_that_was_pushed(tmp_path: Path, fsync: str) -> None:
    chance = random.Random(f"killed {fsync}")
    next_number = 0
    for _ in range(8):
        told = kill_after(start(PUSHER, tmp_path, fsync, next_number), chance.randrange(1, 300))
        assert told[-1] <= len(read_all(tmp_path))
        Queue(tmp_path, "q").close()
        found = read_all(tmp_path)
        # The message being pushed at the kill may be there or not.
        assert found == list(range(len(found)))
        assert told[-1] <= len(found) <= told[-1] + 2
        next_number = len(found)
    assert list(verify(tmp_path, "q")) == []


def test_a_consumer_killed_at_any_moment_continues_at_its_commit(tmp_path: Path) -> None:
    chance = random.Random("killed consumer")
    messages = [f"{number}" for number in range(20_000)]
    with Queue(tmp_path, "q", fsync="never", part_bytes=20_000) as queue:
        queue.push_many(messages)
    seen = 0
    for _ in range(6):
        told = kill_after(start(POPPER, tmp_path), chance.randrange(1, 300))
        assert told == list(range(told[0], told[0] + len(told)))
        assert told[0] <= seen
        seen = told[-1] + 1
    with Queue(tmp_path, "q", "read") as queue, queue.consumer("c", on_damage=pytest.fail) as consumer:
        left = [message.text for message in consumer]
        assert left == messages[len(messages) - len(left) :]
        assert len(left) >= len(messages) - seen


def test_a_second_writer_or_consumer_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    holder = start(HOLDER, tmp_path)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "open\n"
    with pytest.raises(AlreadyOpen, match=f"is already open in process {holder.pid}") as refused:
        Queue(tmp_path, "q")
    assert refused.value.pid == holder.pid
    with Queue(tmp_path, "q", "read") as queue:
        with pytest.raises(AlreadyOpen, match=f"consumer c of queue q is already open in process {holder.pid}"):
            queue.consumer("c")
        queue.consumer("d").close()
    holder.kill()
    holder.communicate()
    with Queue(tmp_path, "q") as queue:
        queue.consumer("c").close()
        with pytest.raises(AlreadyOpen, match=f"process {os.getpid()}"):
            Queue(tmp_path, "q")


def test_readers_in_other_processes_follow_the_writer_from_part_to_part(tmp_path: Path) -> None:
    with Queue(tmp_path, "q", fsync="never", part_bytes=500) as queue:
        reader = start(POPPER, tmp_path)
        assert reader.stdout is not None
        try:
            for number in range(300):
                queue.push(f"{number}")
            assert [int(reader.stdout.readline()) for _ in range(300)] == list(range(300))
        finally:
            reader.kill()
            reader.communicate()


def test_threads_that_push_together_wait_for_the_disk_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[int] = []
    first_sync_runs, all_are_appended = threading.Event(), threading.Event()
    threads_count = 8

    def counted_sync(fd: int) -> None:
        syncs.append(fd)
        first_sync_runs.set()
        assert all_are_appended.wait(20)

    with Queue(tmp_path, "q") as queue:
        monkeypatch.setattr(part_writer, "sync", counted_sync)
        threads = [threading.Thread(target=queue.push, args=[b"%d" % number]) for number in range(threads_count)]
        threads[0].start()
        assert first_sync_runs.wait(20)
        for thread in threads[1:]:
            thread.start()
        assert queue._writer is not None
        while queue._writer.count_pushed < threads_count:
            pass  # the others append while the first waits for the disk
        with queue.consumer("c") as consumer:
            assert consumer.pop() is None, "nothing is readable before it is on disk"
            all_are_appended.set()
            for thread in threads:
                thread.join()
            assert len(syncs) == 2
            assert len(consumer.pop_many(100)) == threads_count
        monkeypatch.undo()


def test_threads_push_over_many_parts_without_losing_one(tmp_path: Path) -> None:
    with Queue(tmp_path, "q", fsync="batch", part_bytes=300, batch_messages=3) as queue:

        def push_some(first: int) -> None:
            for number in range(first, first + 100):
                queue.push(b"%d" % number)

        threads = [threading.Thread(target=push_some, args=[first]) for first in range(0, 600, 100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with queue.consumer("c", "earliest") as consumer:
            found = [int(message.body) for message in consumer]
    assert sorted(found) == list(range(600))
    for first in range(0, 600, 100):
        assert [number for number in found if first <= number < first + 100] == list(range(first, first + 100))
