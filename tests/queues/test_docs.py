"""docs/queue.md: its examples work and it is complete."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.http.queues.config import QueueServerConfig
from ottla.queue import QueueConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (Path(__file__).parents[2] / "docs" / "queue.md").read_text()
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(ottla.__file__).parents[1])}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_every_example_runs_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for example in blocks("python"):
        exec(compile(example, "docs/queue.md", "exec"), {})  # noqa: S102
    assert (tmp_path / "jobs" / "jobs_info_queue").exists()


def test_every_command_of_the_command_line_runs(tmp_path: Path) -> None:
    commands = [line for line in blocks("sh")[0].splitlines() if line.startswith("ottla")]
    assert len(commands) == 7
    for command in commands:
        line = command.replace("ottla queue", f"{sys.executable} -m ottla queue").replace("FOLDER", str(tmp_path))
        done = subprocess.run(["sh", "-c", line], env=ENVIRONMENT, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, (command, done.stderr)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "ottla", "queue", "serve", "--bind", "127.0.0.1:0", "--log-level", "error"]
    with subprocess.Popen(command, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        yield "http://" + serving.stdout.readline().split("HTTP on ")[1].split(",")[0]
        serving.terminate()


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_every_request_is_answered(server: str) -> None:
    for command in blocks("sh")[1].splitlines():
        script = f"Q={server}\n{command.replace('curl -s', 'curl -sS --fail')}"
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, (command, done.stderr)
        if "max_messages" in command:
            assert '"value":"hello"' in done.stdout
            assert '{"part":0,"offset":30,"msg_type":"object","value":{"n": 1}}' in done.stdout


def test_every_setting_is_on_the_page() -> None:
    names = [*(field.name for field in fields(QueueConfig)), *QueueServerConfig.__struct_fields__]
    assert [name for name in names if f"`{name}`" not in PAGE and f"`[{name}]`" not in PAGE] == []
