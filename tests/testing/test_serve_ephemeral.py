"""`ottla serve --ephemeral`: a broker for tests in other languages."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from tests.broker.making import create_topic, produce, values_in
from tests.broker.raw_client import RawClient

import ottla

if TYPE_CHECKING:
    from collections.abc import Iterator


READY = re.compile(r"ottla is ready: Kafka on (127\.0\.0\.1:\d+), HTTP on 127\.0\.0\.1:\d+, data in (.+)\n")


@contextmanager
def ephemeral(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "ottla", "serve", "--ephemeral", *arguments]
    environment = os.environ | {"PYTHONPATH": str(Path(ottla.__file__).parents[1])}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_its_temporary_folder_is_removed_at_the_end(tmp_path: Path) -> None:
    with ephemeral(tmp_path, "--ready-file", "ready.json") as process:
        assert process.stdout is not None
        ready = READY.fullmatch(process.stdout.readline())
        assert ready is not None
        with RawClient(ready[1]) as client:
            create_topic(client, "t")
            produce(client, "t", b"x")
            assert values_in(client, "t") == [b"x"]
        folder = Path(ready[2])
        assert (folder / "t-0").is_dir()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert not folder.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["ready.json"]
    assert json.loads((tmp_path / "ready.json").read_bytes())["kafka"] == ready[1]


def test_faults_must_be_enabled_and_log_a_warning(tmp_path: Path) -> None:
    with ephemeral(tmp_path, "--enable-faults") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        address = re.search(r"HTTP on (\S+),", process.stdout.readline())
        assert address is not None
        assert "FAULTS ARE ENABLED" in process.stderr.readline()
        answer = httpx.post(f"http://{address[1]}/v1/faults", json={"kind": "drop", "client_id": "nobody"}, timeout=20)
        assert answer.status_code == 201


def test_a_second_stop_signal_leaves_nothing_behind(tmp_path: Path) -> None:
    with ephemeral(tmp_path) as process:
        assert process.stdout is not None
        ready = READY.fullmatch(process.stdout.readline())
        assert ready is not None
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) in (0, 143)
    assert not Path(ready[2]).exists()


def test_a_data_dir_with_ephemeral_is_refused(tmp_path: Path) -> None:
    with ephemeral(tmp_path, "--data-dir", "mine") as process:
        _, said = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "--data-dir cannot be used with --ephemeral" in said
    assert list(tmp_path.iterdir()) == []
