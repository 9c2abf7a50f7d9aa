"""`ottla produce` and `ottla consume` as separate processes, against a broker in this process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ottla

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_S = 30


@pytest.fixture(scope="module")
def broker() -> Iterator[ottla.Broker]:
    with ottla.Broker() as running:
        yield running


class Commands:
    def __init__(self, servers: str, folder: Path) -> None:
        self._folder = folder
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(Path(ottla.__file__).parents[1]),
            "OTTLA_BROKER": servers,
        }

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "ottla", *arguments],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *arguments: str, given: bytes = b"", exit_code: int = 0) -> tuple[str, str]:
        process = self.start(*arguments)
        out, err = process.communicate(given, PATIENCE_S)
        assert process.returncode == exit_code, err.decode()
        return out.decode(), err.decode()


@pytest.fixture
def command(broker: ottla.Broker, tmp_path: Path) -> Commands:
    return Commands(broker.bootstrap_servers, tmp_path)


def test_consumed_lines_equal_produced_lines(command: Commands) -> None:
    _, said = command.run("produce", "lines", given=b"one\ntwo\r\n\nfour")
    out, _ = command.run("consume", "lines", "--from", "beginning", "--exit")

    assert said == "4 messages written to lines\n"
    assert out == "one\ntwo\n\nfour\n"


def test_keys_headers_and_partitions_are_set_by_options(command: Commands) -> None:
    command.run("produce", "options", "-k", "me", "-H", "trace=7", "-p", "0", given=b"value\n")
    out, _ = command.run("consume", "options", "--from", "0", "-n", "1", "-f", "json")

    told = json.loads(out)
    del told["timestamp"]
    assert told == {
        "topic": "options", "partition": 0, "offset": 0, "key": "me", "value": "value", "headers": [["trace", "7"]],
    }  # fmt: skip


def test_json_lines_are_copied_from_topic_to_topic(command: Commands, tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text('{"key": "a", "value": {"n": 1}, "timestamp": 1000}\n{"key": "b", "value_base64": "/w=="}\n')
    command.run("produce", "first", "--format", "json", str(lines))
    first, _ = command.run("consume", "first", "--from", "beginning", "--exit", "-f", "json")
    command.run("produce", "second", "--format", "json", given=first.encode())
    second, _ = command.run("consume", "second", "--from", "beginning", "--exit", "-f", "json")

    assert second == first.replace('"topic":"first"', '"topic":"second"')


def test_a_whole_file_can_be_one_message(command: Commands, tmp_path: Path) -> None:
    (tmp_path / "page.txt").write_bytes(b"two\nlines\n")
    command.run("produce", "whole", "--format", "whole", "page.txt")
    out, _ = command.run("consume", "whole", "--from", "-1", "-e", "-f", "json")

    assert json.loads(out)["value"] == "two\nlines\n"


def test_only_the_last_messages_of_a_topic_are_shown(command: Commands) -> None:
    command.run("produce", "few", given=b"".join(b"%d\n" % number for number in range(2500)))
    out, _ = command.run("consume", "few", "--from", "-3", "--exit")

    assert out == "2497\n2498\n2499\n"


def test_an_offset_out_of_range_is_reported_and_the_nearest_used(command: Commands) -> None:
    command.run("produce", "aged", given=b"".join(b"%d\n" % number for number in range(5)))
    command.run("topic", "delete-records", "aged", "--before", "3", "--yes")

    before = command.run("consume", "aged", "--from", "1", "--exit")
    behind = command.run("consume", "aged", "--from", "9", "--exit")

    assert before == ("3\n4\n", "aged-0 has no offset 1: reading from 3\n")
    assert behind == ("", "aged-0 has no offset 9: reading from 5\n")


def test_reading_from_a_time_starts_at_the_first_message_after_it(command: Commands) -> None:
    lines = b"".join(b'{"value": %d, "timestamp": %d}\n' % (n, n * 1000) for n in range(10))
    command.run("produce", "times", "--format", "json", given=lines)
    out, _ = command.run("consume", "times", "--from", "1970-01-01T00:00:07.5Z", "--exit")
    past_the_end, _ = command.run("consume", "times", "--from", "2020-01-01", "--exit")

    assert out == "8\n9\n"
    assert past_the_end == ""


def test_a_group_continues_where_it_stopped(command: Commands) -> None:
    command.run("produce", "shared", given=b"1\n2\n3\n")
    first, _ = command.run("consume", "shared", "-g", "readers", "-n", "2")
    second, _ = command.run("consume", "shared", "-g", "readers", "-n", "1")

    assert (first, second) == ("1\n2\n", "3\n")


def test_it_follows_the_topic_until_it_is_interrupted(command: Commands) -> None:
    command.run("produce", "followed", given=b"old\n")
    following = command.start("consume", "followed", "--from", "beginning")
    assert following.stdout is not None
    assert following.stdout.readline() == b"old\n"

    command.run("produce", "followed", given=b"new\n")
    assert following.stdout.readline() == b"new\n"

    following.send_signal(signal.SIGINT)
    out, err = following.communicate(timeout=PATIENCE_S)
    assert (following.returncode, out, err) == (0, b"", b"")


def test_a_closed_output_pipe_ends_it_quietly(command: Commands) -> None:
    command.run("produce", "endless", given=b"line\n" * 50_000)
    with command.start("consume", "endless", "--from", "beginning", "--exit") as writing:
        assert writing.stdout is not None
        assert writing.stderr is not None
        writing.stdout.readline()
        writing.stdout.close()

        assert (writing.stderr.read(), writing.wait(PATIENCE_S)) == (b"", 0)


@pytest.mark.parametrize(
    ("arguments", "given", "problem"),
    [
        (["produce", "bad", "-f", "key-value"], b"a:b\nno key\n", "standard input, line 2: no key separator ':'"),
        (["produce", "bad", "-f", "json"], b"{}\n", "standard input, line 1: there is no value"),
        (["produce", "bad", "-H", "x"], b"", "--header: expected NAME=VALUE"),
        (["consume", "bad", "--from", "yesterday"], b"", "--from: expected"),
        (["consume", "bad", "-g", "g", "--from", "0"], b"", "--from and --partition cannot be used"),
        (["consume", "bad", "--ca-file", "nowhere.pem"], b"", "there is no file nowhere.pem"),
    ],
)
def test_wrong_usage_is_a_one_line_error_and_exit_code_2(
    command: Commands, arguments: list[str], given: bytes, problem: str
) -> None:
    _, said = command.run(*arguments, given=given, exit_code=2)

    assert problem in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("verb", ["produce", "consume"])
def test_an_unreachable_broker_is_a_one_line_error_and_exit_code_1(command: Commands, verb: str) -> None:
    _, said = command.run(verb, "any", "-b", "127.0.0.1:1", exit_code=1)

    assert said.startswith("ottla: cannot connect to 127.0.0.1:1")
    assert said.count("\n") == 1


def test_an_unknown_topic_is_a_one_line_error(command: Commands) -> None:
    _, said = command.run("consume", "no/such", exit_code=1)

    assert "no/such" in said
    assert said.count("\n") == 1
