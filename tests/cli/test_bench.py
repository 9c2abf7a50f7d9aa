from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.cli.benchmark.load import Load

if TYPE_CHECKING:
    from .conftest import Cli


def test_all_messages_are_produced_and_consumed_and_the_topic_is_deleted(cli: Cli) -> None:
    produced, consumed, acknowledged, received = cli.json(
        "bench", "-n", "500", "--rate", "5000", "--seconds", "20", "--size", "64", "-p", "3"
    )
    assert (produced["measured"], produced["messages"]) == ("produce", 500)
    assert (consumed["measured"], consumed["messages"]) == ("consume", 500)
    assert (acknowledged["measured"], acknowledged["messages"]) == ("acknowledged at 5000/s", 500)
    assert (received["measured"], received["messages"]) == ("received at 5000/s", 500)
    assert 0 < received["p50_ms"] <= received["p99_ms"] <= received["max_ms"]
    assert not [row for row in cli.json("topic", "list") if row["topic"].startswith("ottla-bench-")]


def test_it_stops_when_its_time_is_up(cli: Cli) -> None:
    produced, *_ = cli.json("bench", "-n", "1000000000", "--seconds", "0.05")
    assert produced["messages"] < 1_000_000_000


def test_a_given_topic_is_written_to_and_kept(cli: Cli, name: str) -> None:
    cli("topic", "create", name, "-p", "2")
    cli("produce", name, given="before\n")
    arguments = ("bench", "--topic", name, "-n", "10", "--rate", "100", "--acks", "0", "--compression", "lz4")
    _, consumed, *_ = cli.json(*arguments)
    assert consumed["messages"] == 10
    [described] = cli.json("topic", "describe", name)
    assert described["messages"] == 21


def test_values_are_reproducible_and_of_the_requested_size() -> None:
    load = Load("t", 10, 1, 99, 1, {})
    assert load.values() == load.values()
    assert {len(value) for value in load.values()} == {99}
    assert len(set(load.values())) > 1


@pytest.mark.parametrize(
    ("arguments", "exit_code", "sentence"),
    [
        (["--size", "4"], 2, "invalid value for '--size': 4 is not in the range x>=8"),
        (["--seconds", "0"], 2, "invalid value for '--seconds'"),
        (["--topic", "t", "-p", "2"], 2, "--partitions applies to a new topic; leave it out with --topic"),
        (["--topic", "not/there"], 1, "topic 'not/there': INVALID_TOPIC_EXCEPTION"),
    ],
)
def test_invalid_usage_is_a_one_line_error(cli: Cli, arguments: list[str], exit_code: int, sentence: str) -> None:
    assert cli.refuses("bench", *arguments, exit_code=exit_code).startswith(sentence)
