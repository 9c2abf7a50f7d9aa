from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Cli


def messages(cli: Cli, topic: str, count: int, partition: int = 0) -> None:
    cli("produce", topic, "-p", str(partition), given="x\n" * count)


def test_a_topic_is_created_listed_described_altered_and_deleted(cli: Cli, name: str) -> None:
    assert cli("topic", "create", name, "-p", "2", "--set", "retention.ms=1000").stdout == f"{name} created\n"
    [listed] = [row for row in cli.json("topic", "list") if row["topic"] == name]
    assert listed == {"topic": name, "partitions": 2, "replicas": 1, "problems": None, "internal": False}

    cli("topic", "alter", name, "-p", "3", "--set", "segment.ms=5000", "--unset", "retention.ms")
    [described] = cli.json("topic", "describe", name)
    assert [row["partition"] for row in described["partitions"]] == [0, 1, 2]
    assert [(row["setting"], row["value"]) for row in described["configs"]] == [("segment.ms", "5000")]

    assert cli("topic", "delete", name, "--yes").stdout == f"{name} deleted\n"
    assert name not in [row["topic"] for row in cli.json("topic", "list")]


def test_a_table_shows_partitions_and_non_default_configs(cli: Cli, name: str) -> None:
    cli("topic", "create", name, "--set", "retention.ms=1000")
    messages(cli, name, 5)
    assert cli("topic", "describe", name).stdout.splitlines() == [
        f"{name}: 1 partition, replication factor 1, 5 messages",
        "",
        "PARTITION  LEADER  REPLICAS  IN SYNC  FIRST  NEXT  MESSAGES",
        "        0       0  0         0            0     5         5",
        "",
        "SETTING       VALUE  SOURCE",
        "retention.ms  1000   topic",
    ]
    assert "segment.bytes" in cli("topic", "describe", name, "--all-settings").stdout


def test_several_topics_are_separated_by_a_line(cli: Cli, name: str) -> None:
    cli("topic", "create", f"{name}.a", f"{name}.b")
    shown = cli("topic", "describe", f"{name}.a", f"{name}.b").stdout
    assert f"\n\n{name}.b: 1 partition" in shown


def test_internal_topics_are_listed_when_asked_for(cli: Cli, name: str) -> None:
    messages(cli, name, 1)
    cli("consume", name, "-g", name, "-n", "1")
    assert "__consumer_offsets" not in cli("topic", "list").stdout
    assert "__consumer_offsets" in cli("topic", "list", "--internal").stdout


def test_an_existing_topic_is_an_error_unless_if_not_exists_is_given(cli: Cli, name: str) -> None:
    cli("topic", "create", name)
    assert "TOPIC_ALREADY_EXISTS" in cli.refuses("topic", "create", name, exit_code=1)
    assert cli("topic", "create", name, f"{name}.new", "--if-not-exists").stdout == f"{name}.new created\n"


def test_a_dry_run_creates_and_alters_nothing(cli: Cli, name: str) -> None:
    assert cli("topic", "create", name, "--dry-run").stdout == f"{name} could be created\n"
    assert "UNKNOWN_TOPIC" in cli.refuses("topic", "describe", name, exit_code=1)
    cli("topic", "create", name)
    cli("topic", "alter", name, "-p", "9", "--set", "retention.ms=5", "--dry-run")
    [described] = cli.json("topic", "describe", name)
    assert (len(described["partitions"]), described["configs"]) == (1, [])


def test_an_alteration_that_fails_in_part_changes_nothing(cli: Cli, name: str) -> None:
    cli("topic", "create", name, "-p", "2")
    refused = cli.refuses("topic", "alter", name, "-p", "1", "--set", "retention.ms=5", exit_code=1)
    assert "INVALID_PARTITIONS" in refused
    [described] = cli.json("topic", "describe", name)
    assert described["configs"] == []


def test_existing_topics_are_deleted_and_the_others_are_errors(cli: Cli, name: str) -> None:
    cli("topic", "create", name)
    done = cli("topic", "delete", f"{name}.no", name, f"{name}.nor", "-y", exit_code=1)
    assert done.stdout == f"{name} deleted\n"
    assert [line.split("'")[1] for line in done.stderr.splitlines()] == [f"{name}.no", f"{name}.nor"]


def test_deleting_asks_for_confirmation(cli: Cli, name: str) -> None:
    cli("topic", "create", name)
    declined = cli("topic", "delete", name, given="n\n", exit_code=1)
    assert declined.stderr.startswith(f"Delete {name} with all messages at {cli.servers}? [y/N]: ")
    assert declined.stderr.endswith("ottla: nothing was changed\n")
    unanswered = cli("topic", "delete", name, exit_code=2)
    assert unanswered.stderr.endswith("\nottla: no terminal to confirm on; pass --yes to skip the confirmation\n")
    assert cli("topic", "delete", name, given="y\n").stdout == f"{name} deleted\n"


@pytest.mark.parametrize(("before", "first"), [("end", 10), ("4", 4), ("-3", 7), ("999", 10), ("2999-01-01", 10)])
def test_the_oldest_messages_are_deleted(cli: Cli, name: str, before: str, first: int) -> None:
    messages(cli, name, 10)
    assert cli("topic", "delete-records", name, "--before", before, "-y").stdout == f"{name}-0 begins at {first} now\n"


def test_records_are_deleted_by_time_in_the_given_partitions(cli: Cli, name: str) -> None:
    cli("topic", "create", name, "-p", "2")
    lines = "".join(f'{{"value": {n}, "partition": {n % 2}, "timestamp": {n * 1000}}}\n' for n in range(10))
    cli("produce", name, "-f", "json", given=lines)
    done = cli("topic", "delete-records", name, "--before", "1970-01-01T00:00:06Z", "-p", "1", "-y")
    assert done.stdout == f"{name}-1 begins at 3 now\n"


def test_no_confirmation_is_asked_if_there_is_nothing_to_delete(cli: Cli, name: str) -> None:
    cli("topic", "create", name)
    assert cli("topic", "delete-records", name, "--before", "end").stdout == "there is nothing to delete\n"


@pytest.mark.parametrize(
    ("arguments", "exit_code", "sentence"),
    [
        (["create"], 2, "missing argument 'TOPIC...'; see ottla topic create --help"),
        (["create", "a", "-p", "0"], 2, "invalid value for '-p' / '--partitions'"),
        (["create", "a", "--set", "x"], 2, "--set: expected NAME=VALUE, got 'x'"),
        (["create", "a/b"], 1, "cannot create topic 'a/b': INVALID_TOPIC_EXCEPTION"),
        (["create", "bad-config", "--set", "no.such=1"], 1, "cannot create topic 'bad-config': INVALID_CONFIG"),
        (["alter", "a"], 2, "nothing to alter: give --partitions, --set or --unset"),
        (["alter", "not-there", "-p", "3"], 1, "cannot increase topic 'not-there' to 3 partitions: UNKNOWN_TOPIC"),
        (["describe", "not-there"], 1, "topic 'not-there': UNKNOWN_TOPIC_OR_PARTITION (create it first"),
        (["delete-records", "not-there", "--before", "end", "-y"], 1, "topic 'not-there': UNKNOWN_TOPIC"),
        (["delete-records", "a", "--before", "soon"], 2, "--before: expected"),
        (["delete-records", "a"], 2, "missing option '--before'; see ottla topic delete-records --help"),
        (["lst"], 2, "no such command lst (did you mean list?); see ottla topic --help"),
        (
            ["list", "--intern"],
            2,
            "no such option --intern (did you mean --internal?); see ottla topic list --help",
        ),
    ],
)
def test_invalid_usage_is_a_one_line_error(cli: Cli, arguments: list[str], exit_code: int, sentence: str) -> None:
    assert cli.refuses("topic", *arguments, exit_code=exit_code).startswith(sentence)


def test_records_of_an_unknown_partition_cannot_be_deleted(cli: Cli, name: str) -> None:
    cli("topic", "create", name)
    refused = cli.refuses("topic", "delete-records", name, "--before", "end", "-p", "3", exit_code=2)
    assert refused == f"topic {name!r} has no partition 3; it has only 0"
