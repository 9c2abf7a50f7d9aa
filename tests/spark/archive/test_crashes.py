"""Kill an archiver at every disk operation, and restart it."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla import Producer
from ottla.spark.archive.names import parse
from ottla.spark.archive.places import FolderPlace

from .conftest import DAY_MS, Source, archived, plain, values

CRASHING = Path(__file__).with_name("crashing.py")
MOST_STEPS = 60


@pytest.fixture
def run_and_kill(source: Source, tmp_path: Path) -> Iterator[Callable[[int], int]]:
    command = [sys.executable, str(CRASHING), source.servers, source.topic, str(tmp_path / source.topic)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as program:
        assert program.stdin is not None
        assert program.stdout is not None

        def at_step(step: int) -> int:
            print(step, file=program.stdin)
            return int(program.stdout.readline())  # type: ignore[union-attr]

        yield at_step
        program.stdin.close()


def test_kills_neither_lose_nor_duplicate_records(
    source: Source, place: FolderPlace, tmp_path: Path, run_and_kill: Callable[[int], int]
) -> None:
    folder = tmp_path / source.topic
    written = 0
    for step in range(1, MOST_STEPS):
        with Producer(source.servers) as producer:
            for number in range(written, written + 20):
                producer.send(source.topic, b"%d" % number, partition=0, timestamp_ms=number % 2 * DAY_MS)
        written += 20
        code = run_and_kill(step)
        found = archived(place)
        assert [offset for _, offset, _ in found] == list(range(len(found)))
        if code == 0:
            break
        assert code == -signal.SIGKILL
    assert code == 0
    assert step > 8  # it was killed while it published, and while it merged
    assert values(place) == list(range(written))
    # Leftovers are removed, so that other tools see the same rows.
    assert [int(row["value"]) for row in plain(folder).to_pylist()] == list(range(written))
    assert [path.name for path in folder.rglob("*.parquet") if parse(f"{path.parent.name}/{path.name}") is None] == []


class Watched(FolderPlace):
    """A folder that is read completely after every change."""

    seen = 0
    expected: list[int]

    def check(self) -> None:
        assert values(self) == self.expected
        self.seen += 1

    def remove(self, name: str) -> None:
        super().remove(name)
        self.check()


def test_readers_see_all_rows_at_every_step_of_a_merge(source: Source, tmp_path: Path) -> None:
    place = Watched(tmp_path / source.topic)
    for number in range(4):
        source.write(range(number * 10, number * 10 + 10), partition=0, timestamp_ms=number * DAY_MS)
        source.archive(place)
    place.expected = list(range(40))
    assert source.archive(place, merges_all=True).merged == 4
    assert place.seen == 4
