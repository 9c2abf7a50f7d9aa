"""Queues in the folder of the Rust crate v_queue, and the other way round."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from ottla.queue import AlreadyOpen, Queue, verify

CHANCE = random.Random("v_queue")
MESSAGES: list[bytes | str] = [
    "Hello, world!",
    b"\x00\x01\x02\xff",
    "",
    "Привет",
    b"\xee\xfe\xef\xee" * 20,
    bytes(i % 251 for i in range(300)),
    *(CHANCE.randbytes(CHANCE.randrange(2000)) for _ in range(200)),
    CHANCE.randbytes(300_000),
]
PATIENCE_S = 60


def line_of(message: bytes | str) -> str:
    return f"S {message.encode().hex()}" if isinstance(message, str) else f"O {message.hex()}"


LINES = [line_of(message) for message in MESSAGES]


def run(v_queue: Path, *arguments: object, told: str = "") -> list[str]:
    command = [str(v_queue), *map(str, arguments)]
    done = subprocess.run(command, input=told, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def push(v_queue: Path, folder: Path, lines: list[str]) -> list[int]:
    return [int(edge) for edge in run(v_queue, "push", folder, "events", told="".join(f"{line}\n" for line in lines))]


def pop(v_queue: Path, folder: Path, count: int = 0) -> list[str]:
    opened, *lines = run(v_queue, "pop", folder, "events", "c", count)
    assert opened == "open"
    return lines


def read(folder: Path, count: int = 1_000_000) -> list[str]:
    with Queue(folder, "events", "read") as queue, queue.consumer("c", "earliest", on_damage=pytest.fail) as consumer:
        messages = consumer.pop_many(count)
        consumer.commit()
    return [line_of(message.text if message.is_text else message.body) for message in messages]


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_the_same_pushes_leave_the_same_files(v_queue: Path, tmp_path: Path) -> None:
    edges = []
    for lines, messages in ((LINES[:100], MESSAGES[:100]), (LINES[100:], MESSAGES[100:])):
        theirs = push(v_queue, tmp_path / "theirs", lines)
        with Queue(tmp_path / "ours", "events") as queue:
            edges.append(theirs == [queue.push(message) for message in messages])
    assert edges == [True, True]
    ours, theirs_files = files_in(tmp_path / "ours"), files_in(tmp_path / "theirs")
    # Both overwrite these lines in place; the crate cuts off what a longer one left, from 0.2.9 on.
    for part in (0, 1):
        name = f"events-{part}/events_info_push"
        ours[name] = ours[name].split(b"\n")[0] + b"\n"
    assert ours == theirs_files


def test_ottla_reads_the_crates_files(v_queue: Path, tmp_path: Path) -> None:
    push(v_queue, tmp_path, LINES[:50])
    push(v_queue, tmp_path, LINES[50:])
    assert read(tmp_path) == LINES
    assert list(verify(tmp_path, "events")) == []


def test_the_crate_reads_ottlas_files(v_queue: Path, tmp_path: Path) -> None:
    with Queue(tmp_path, "events", part_bytes=20_000) as queue:
        queue.push_many(MESSAGES[:50])
        queue.consumer("c", "earliest").close()
        for message in MESSAGES[50:]:
            queue.push(message)
        assert queue.part > 5
    assert pop(v_queue, tmp_path) == LINES


def test_a_consumer_continues_at_the_other_sides_commit(v_queue: Path, tmp_path: Path) -> None:
    with Queue(tmp_path, "events", part_bytes=20_000) as queue:
        queue.push_many(MESSAGES)
    seen = read(tmp_path, 7)
    while len(seen) < len(LINES):
        seen += pop(v_queue, tmp_path, 31)
        seen += read(tmp_path, 17)
    assert seen == LINES


def test_both_may_write_one_after_the_other(v_queue: Path, tmp_path: Path) -> None:
    for at in range(0, 60, 20):
        push(v_queue, tmp_path, LINES[at : at + 10])
        with Queue(tmp_path, "events") as queue:
            queue.push_many(MESSAGES[at + 10 : at + 20])
    assert read(tmp_path) == LINES[:60]
    with Queue(tmp_path, "events", "read") as queue:
        assert queue.folder.parts() == [0, 1, 2, 3, 4, 5]


def test_a_consumer_of_the_crate_follows_a_writer_from_part_to_part(v_queue: Path, tmp_path: Path) -> None:
    with Queue(tmp_path, "events", fsync="never", part_bytes=3000) as queue:
        command = [str(v_queue), "follow", str(tmp_path), "events", "c", str(len(LINES))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as following:
            assert following.stdout is not None
            assert following.stdout.readline() == "open\n"
            for message in MESSAGES:
                queue.push(message)
            assert following.stdout.read().splitlines() == LINES
            assert following.wait(PATIENCE_S) == 0


def test_one_writer_at_a_time_whichever_it_is(v_queue: Path, tmp_path: Path) -> None:
    with Queue(tmp_path, "events"):
        assert run(v_queue, "write", tmp_path, "events") == ["already open"]
    command = [str(v_queue), "write", str(tmp_path), "events"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writing:
        assert writing.stdout is not None
        assert writing.stdout.readline() == "open\n"
        with pytest.raises(AlreadyOpen, match="another process"):
            Queue(tmp_path, "events")
        writing.communicate()
    with Queue(tmp_path, "events") as queue:
        queue.push(b"1")


def test_a_damaged_message_of_the_crate_loses_only_that_message(v_queue: Path, tmp_path: Path) -> None:
    edges = push(v_queue, tmp_path / "whole", LINES[:20])
    shutil.copytree(tmp_path / "whole", tmp_path / "damaged")
    path = tmp_path / "damaged" / "events-0" / "events_queue"
    data = bytearray(path.read_bytes())
    data[edges[8] - 1] ^= 1
    path.write_bytes(data)
    damages: list[object] = []
    with (
        Queue(tmp_path / "damaged", "events", "read") as queue,
        queue.consumer("d", "earliest", on_damage=damages.append) as consumer,
    ):
        assert [message.number for message in consumer] == [*range(1, 9), *range(10, 21)]
    assert len(damages) == 1
