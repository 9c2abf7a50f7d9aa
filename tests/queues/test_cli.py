"""`ottla queue`."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from click.testing import CliRunner, Result

import ottla
from ottla.cli.main import program
from ottla.queue import Queue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.testing import EphemeralBroker

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(ottla.__file__).parents[1])}


def run(*arguments: object, told: bytes | None = None) -> Result:
    return CliRunner().invoke(program, ["queue", *map(str, arguments)], input=told)


def test_messages_are_pushed_popped_and_listed(tmp_path: Path) -> None:
    pushed = run("push", tmp_path, "jobs", "one", "two")
    assert (pushed.exit_code, pushed.stderr) == (0, "2 messages pushed to jobs\n")
    run("push", tmp_path, "jobs", told=b"three\r\n\xff\n")
    assert run("list", tmp_path).stdout == "QUEUE  MESSAGES  PARTS\njobs          4      2\n"
    assert json.loads(run("list", tmp_path, "-o", "json").stdout) == [{"queue": "jobs", "messages": 4, "parts": 2}]
    assert run("pop", tmp_path, "jobs").stdout == "one\n"
    assert run("pop", tmp_path, "jobs", "--no-commit").stdout == "two\n"
    assert run("info", tmp_path, "jobs").stdout == (
        "PART  MESSAGES  BYTES  IS NEWEST\n"
        "   0         2     56  no\n"
        "   1         2     56  yes\n"
        "\n"
        "CONSUMER  PART  BYTE  LAG\n"
        "cli          0    28    3\n"
    )
    assert json.loads(run("info", tmp_path, "jobs", "-o", "json").stdout) == {
        "queue": "jobs",
        "parts": [
            {"part": 0, "messages": 2, "bytes": 56, "is_newest": False},
            {"part": 1, "messages": 2, "bytes": 56, "is_newest": True},
        ],
        "consumers": [{"consumer": "cli", "part": 0, "byte": 28, "lag": 3}],
    }
    assert run("pop", tmp_path, "jobs", "--all").stdout_bytes == b"two\nthree\n\xff\n"
    assert run("pop", tmp_path, "jobs", "--max", "5").stdout == ""
    assert run("tail", tmp_path, "jobs", "--from", "earliest", "--max", "3").stdout == "one\ntwo\nthree\n"


def test_a_new_consumer_may_start_with_the_latest_part(tmp_path: Path) -> None:
    for message in ("old", "new"):
        run("push", tmp_path, "jobs", message)
    assert run("pop", tmp_path, "jobs", "-c", "late", "--from", "latest-part", "--all").stdout == "new\n"
    assert run("pop", tmp_path, "jobs", "-c", "late", "--from", "latest-part").stdout == ""
    refused = run("pop", tmp_path, "jobs", "--from", "now")
    assert (refused.exit_code, refused.stdout) == (2, "")


def test_corruption_is_found_and_repaired_where_possible(tmp_path: Path) -> None:
    run("push", tmp_path, "jobs", "one", "two")
    assert run("verify", tmp_path).stdout == "jobs: intact\n"
    assert run("repair", tmp_path).stdout == "jobs: nothing to repair\n"
    (tmp_path / "jobs_info_queue").write_bytes(b"jobs;7;1\n")
    data = tmp_path / "jobs-0" / "jobs_queue"
    data.write_bytes(data.read_bytes()[:-1] + b"?")
    found = run("verify", tmp_path, "jobs")
    assert found.exit_code == 1
    assert found.stdout == (
        "queue jobs, part 0, byte 0: info_queue is missing or damaged\n"
        "queue jobs, part 0, byte 28: checksum mismatch; messages lost: 1\n"
    )
    assert run("repair", tmp_path, "jobs").stdout == "jobs: rewrote info_queue for part 0\n"
    assert run("verify", tmp_path, "jobs").stderr.startswith("ottla: 1 problems, 1 messages lost")


def test_a_missing_queue_is_a_one_line_error(tmp_path: Path) -> None:
    for command in ("info", "pop", "tail", "verify", "repair"):
        refused = run(command, tmp_path, "jobs")
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert refused.stderr == f"ottla: no queue jobs in {tmp_path}\n"
    assert run("verify", tmp_path).stderr == f"ottla: there are no queues in {tmp_path}\n"
    assert run("list", tmp_path / "nowhere").stdout == "QUEUE  MESSAGES  PARTS\n"


@contextmanager
def served(folder: Path, config: str) -> Iterator[tuple[str, int]]:
    """Run `ottla queue serve` with this configuration; yields its address."""
    (folder / "v-queue-server.toml").write_text(config)
    flags = ["--bind", "127.0.0.1:0", "--data-dir", str(folder / "data"), "--no-auth"]
    with subprocess.Popen(
        [sys.executable, "-m", "ottla", "queue", "serve", *flags],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
    ) as serving:
        assert serving.stdout is not None
        line = serving.stdout.readline()
        host, port = line.split("HTTP on ")[1].split(",")[0].split(":")
        try:
            yield host, int(port)
        finally:
            serving.send_signal(signal.SIGTERM)
            serving.wait(20)


def test_queue_serve_serves_the_folder_until_stopped(tmp_path: Path) -> None:
    with Queue(tmp_path / "data", "jobs") as queue:
        queue.push("one")
    config = 'log_level = "error"\nauth_enabled = true\n[users]\nann = "x"\n'
    with served(tmp_path, config) as (host, port):
        with urllib.request.urlopen(f"http://{host}:{port}/api/v1/queues") as answer:  # noqa: S310
            assert json.load(answer) == {"queues": ["jobs"]}
        with urllib.request.urlopen(f"http://{host}:{port}/health") as answer:  # noqa: S310
            assert json.load(answer) == {"status": "ok", "version": ottla.__version__}


def test_queue_serve_refuses_slow_requests_and_other_origins(tmp_path: Path) -> None:
    def answer(sent: bytes) -> bytes:
        with socket.create_connection(address, 20) as connection:
            connection.sendall(sent)
            return connection.recv(65536)

    config = 'log_level = "error"\nmax_stalled_ms = 300\nallowed_hosts = ["queues.example"]\n'
    with served(tmp_path, config) as address:
        assert answer(b"GET /health HT").startswith(b"HTTP/1.1 408 ")
        push = b"POST /api/v1/queues/q/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf"
        assert answer(push).startswith(b"HTTP/1.1 408 ")
        ask = b"GET /api/v1/queues HTTP/1.1\r\nhost: %b\r\n\r\n"
        assert answer(ask % b"evil.example:9093").startswith(b"HTTP/1.1 403 ")
        assert answer(ask % b"localhost.evil.example").startswith(b"HTTP/1.1 403 ")
        assert answer(ask % b"queues.example").startswith(b"HTTP/1.1 200 ")
        assert answer(ask % b"localhost:9093").startswith(b"HTTP/1.1 200 ")


def test_a_queue_is_copied_to_a_topic_and_back(ottla: EphemeralBroker, tmp_path: Path) -> None:
    messages: list[bytes | str] = ["text", b"\xff", *(f"{number}" for number in range(3000))]
    with Queue(tmp_path, "jobs") as queue:
        queue.push_many(messages)
    for count in (len(messages), 0):
        exported = run("export", tmp_path, "jobs", "jobs", "--broker", ottla.bootstrap_servers)
        assert exported.exit_code == 0, exported.output
        assert exported.stderr.endswith(f"{count} messages written to jobs\n")
    assert len(ottla.records("jobs")) == len(messages)
    for count in (len(messages), 0):
        imported = run("import", tmp_path, "copy", "jobs", "--broker", ottla.bootstrap_servers)
        assert imported.exit_code == 0, imported.output
        assert imported.stderr.endswith(f"{count} messages pushed to copy\n")
    with Queue(tmp_path, "copy", "read") as queue, queue.reader("earliest") as reader:
        assert [message.text if message.is_text else message.body for message in reader] == messages


def test_the_passwords_of_queues_are_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "ottla.toml"
    file.write_text('[queues]\npart_bytes = "64MiB"\n[queues.users]\nann = "hush"\n')
    shown = CliRunner().invoke(program, ["config", "show", "--config", str(file)])
    assert "queues.part_bytes" in shown.stdout
    assert "queues.users" in shown.stdout
    file.write_text('[queues]\nusers = ["hush"]\n')
    refused = CliRunner().invoke(program, ["config", "show", "--config", str(file)])
    assert refused.exit_code == 2
    assert "hush" not in shown.output + refused.output


def test_an_encrypted_queue_is_copied_to_a_topic_and_back(ottla: EphemeralBroker, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    assert CliRunner().invoke(program, ["keys", "generate", str(keys)]).exit_code == 0
    there = ("--broker", ottla.bootstrap_servers, "--keys", keys)
    assert run("push", tmp_path, "jobs", "one", "--keys", keys).exit_code == 0
    exported = run("export", tmp_path, "jobs", "topic", *there)
    assert exported.exit_code == 0, exported.stderr
    assert run("import", tmp_path, "copy", "topic", *there).exit_code == 0
    assert run("pop", tmp_path, "copy", "--keys", keys).stdout == "one\n"
