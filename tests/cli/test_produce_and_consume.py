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
    out, _ = command.run("consume", "lines", "--from", "earliest", "--exit")

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
    first, _ = command.run("consume", "first", "--from", "earliest", "--exit", "-f", "json")
    command.run("produce", "second", "--format", "json", given=first.encode())
    second, _ = command.run("consume", "second", "--from", "earliest", "--exit", "-f", "json")

    assert second == first.replace('"topic":"first"', '"topic":"second"')


def test_a_whole_file_can_be_one_message(command: Commands, tmp_path: Path) -> None:
    (tmp_path / "page.txt").write_bytes(b"two\nlines\n")
    command.run("produce", "whole", "--format", "whole", "page.txt")
    out, _ = command.run("consume", "whole", "--from", "-1", "-e", "-f", "json")

    assert json.loads(out)["value"] == "two\nlines\n"


def test_a_bad_line_is_reported_with_the_number_of_written_messages_and_how_to_continue(command: Commands) -> None:
    _, said = command.run("produce", "partly", "-f", "key-value", given=b"a:1\nb:2\nbad\nc:3\n", exit_code=2)
    assert said == (
        "ottla: standard input, line 3: no key separator ':'; 2 messages were written to partly: "
        "correct the line, then continue with --skip 2\n"
    )
    _, said = command.run(
        "produce", "partly", "-f", "key-value", "--skip", "2", given=b"a:1\nb:2\nd:4\nbad\n", exit_code=2
    )
    assert said.endswith("1 message was written to partly: correct the line, then continue with --skip 3\n")
    out, _ = command.run("consume", "partly", "--from", "earliest", "--exit")
    assert out == "1\n2\n4\n"


def test_all_lines_can_be_checked_before_the_first_is_written(command: Commands, tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("a:1\n")
    (tmp_path / "bad.txt").write_text("b:2\nbad\nworse\n")
    written = ("produce", "checked", "-f", "key-value")
    _, said = command.run(*written, "--check", "good.txt", "bad.txt", exit_code=2)
    assert said == "ottla: bad.txt, line 2: no key separator ':'; nothing was written\n"
    _, said = command.run(*written, "--check", given=b"c:3\n")
    assert said == "1 message written to checked\n"
    _, said = command.run(*written, "--dry-run", given=b"d:4\n", exit_code=0)
    assert said == "1 message could be written to checked\n"
    out, _ = command.run("consume", "checked", "--from", "earliest", "--exit")
    assert out == "3\n"


def test_a_message_is_as_large_as_its_topic_allows(command: Commands, tmp_path: Path) -> None:
    large = bytes(3 << 20)
    (tmp_path / "large").write_bytes(large)
    command.run("topic", "create", "large", "--set", "max.message.bytes=4194304")
    command.run("topic", "create", "small")
    _, said = command.run("produce", "large", "-f", "whole", "large")
    assert said == "1 message written to large\n"
    out, _ = command.run("consume", "large", "--from", "earliest", "--exit", "-f", "%S")
    assert out == str(len(large))
    _, said = command.run("produce", "small", "-f", "whole", "large", exit_code=1)
    assert "max.message.bytes" in said
    assert "ottla topic alter small --set max.message.bytes=" in said
    assert said.count("\n") == 1


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


def test_reading_stops_at_an_offset_or_time(command: Commands) -> None:
    lines = b"".join(b'{"value": %d, "timestamp": %d}\n' % (n, n * 1000) for n in range(10))
    command.run("produce", "ended", "--format", "json", given=lines)

    assert command.run("consume", "ended", "--from", "2", "--to", "4")[0] == "2\n3\n"
    assert command.run("consume", "ended", "--from", "7", "--until", "1970-01-01T00:00:08.5Z")[0] == "7\n8\n"
    assert command.run("consume", "ended", "--from", "-3", "--to", "-1")[0] == "7\n8\n"


def test_only_messages_that_meet_the_conditions_are_printed_and_counted(command: Commands) -> None:
    lines = b"".join(b'{"key": "k%d", "value": {"n": %d}}\n' % (n % 2, n) for n in range(10))
    command.run("produce", "filtered", "--format", "json", given=lines)
    conditions = ("--filter", "key=k1", "--filter", "$.n>3")
    out, _ = command.run("consume", "filtered", "--from", "earliest", "-n", "2", *conditions, "-f", r"%t %p/%o %k %s\n")

    assert out == 'filtered 0/5 k1 {"n":5}\nfiltered 0/7 k1 {"n":7}\n'


def test_topics_are_selected_by_a_regular_expression(command: Commands) -> None:
    for name in ("shop.eu", "shop.us", "shopping"):
        command.run("produce", name, given=name.encode())
    out, _ = command.run(
        "consume", r"^shop\..*", "--from", "earliest", "--exit", "-X", "isolation.level=read_committed"
    )

    assert sorted(out.splitlines()) == ["shop.eu", "shop.us"]


def test_a_group_continues_where_it_stopped(command: Commands) -> None:
    command.run("produce", "shared", given=b"1\n2\n3\n")
    first, _ = command.run("consume", "shared", "-g", "readers", "-n", "2")
    second, _ = command.run("consume", "shared", "-g", "readers", "-n", "1")

    assert (first, second) == ("1\n2\n", "3\n")


def test_it_follows_the_topic_until_it_is_interrupted(command: Commands) -> None:
    command.run("produce", "followed", given=b"old\n")
    following = command.start("consume", "followed", "--from", "earliest")
    assert following.stdout is not None
    assert following.stdout.readline() == b"old\n"

    command.run("produce", "followed", given=b"new\n")
    assert following.stdout.readline() == b"new\n"

    following.send_signal(signal.SIGINT)
    out, err = following.communicate(timeout=PATIENCE_S)
    assert (following.returncode, out, err) == (0, b"", b"")


def test_a_closed_output_pipe_ends_it_quietly(command: Commands) -> None:
    command.run("produce", "endless", given=b"line\n" * 50_000)
    with command.start("consume", "endless", "--from", "earliest", "--exit") as writing:
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
        (["consume", "bad", "-g", "g", "--from", "0"], b"", "--from, --to, --exit and --partition cannot be used"),
        (["consume", "bad", "-g", "g", "--exit"], b"", "--exit and --partition cannot be used with --group"),
        (["consume", "bad", "--to", "2999-01-01"], b"", "--to: 2999-01-01 is in the future"),
        (["consume", "bad", "--filter", "size>1"], b"", "--filter: unknown field 'size'"),
        (["consume", "bad", "-f", "jsonn"], b"", "--format: expected value, key-value, json, full, or a template"),
        (
            ["consume", "bad", "-X", "isolation.lvl=x"],
            b"",
            "unknown client option isolation.lvl (did you mean isolation.level?)",
        ),
        (["consume", "^none.*"], b"", "no topic matches ^none.*"),
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
