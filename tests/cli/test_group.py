from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.broker.raw_client import RawClient
from tests.broker.sharing import ACCEPT, ShareMember

from ottla import Client
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .conftest import Cli


@pytest.fixture
def group(cli: Cli, name: str) -> str:
    """A group named like its topic; it has read all 10 messages of the first of two partitions."""
    cli("topic", "create", name, "-p", "2")
    lines = "".join(f'{{"value": {n}, "partition": {n % 2}, "timestamp": {n // 2 * 1000}}}\n' for n in range(20))
    cli("produce", name, "-f", "json", given=lines)
    cli("group", "reset-offsets", name, "--to", "end", "-t", f"{name}:0", "--execute")
    return name


def offsets(cli: Cli, group: str) -> dict[int, int]:
    [described] = cli.json("group", "describe", group)
    return {row["partition"]: row["committed"] for row in described["partitions"]}


def test_a_group_is_listed_described_and_deleted(cli: Cli, group: str) -> None:
    listed = {"group": group, "state": "Empty", "type": "classic", "protocol": ""}
    assert listed in cli.json("group", "list")
    assert listed not in cli.json("group", "list", "--state", "Stable")
    assert cli("group", "describe", group).stdout.splitlines()[0] == f"{group}: Empty, 0 members, coordinator 0, lag 0"

    assert cli("group", "delete", group, "-y").stdout == f"{group} deleted\n"
    assert "GROUP_ID_NOT_FOUND" in cli.refuses("group", "describe", group, exit_code=1)


def test_members_are_shown_with_their_partitions_and_lag(cli: Cli, group: str) -> None:
    def describe() -> tuple[str, Any]:
        return cli("group", "describe", group).stdout, cli.json("group", "describe", group)[0]

    async def scenario() -> tuple[str, Any]:
        async with (
            Client(cli.servers, client_id="ann") as client,
            client.consumer(group, group=group, auto_offset_reset="earliest", auto_commit=False) as consumer,
        ):
            await consumer.poll()
            return await asyncio.to_thread(describe)

    table, described = asyncio.run(scenario())
    [member] = described["members"]
    assert (member["client"], member["partitions"]) == ("ann", [f"{group}-0", f"{group}-1"])
    assert [(row["committed"], row["lag"], row["client"]) for row in described["partitions"]] == [
        (10, 0, "ann"),
        (None, None, "ann"),
    ]
    assert table.startswith(f"{group}: Stable, 1 member, assignor range, coordinator 0, lag 0\n\nMEMBER")


def test_a_reset_is_a_preview_until_it_is_executed(cli: Cli, group: str) -> None:
    previewed = cli("group", "reset-offsets", group, "--to", "earliest")
    assert previewed.stderr == "nothing was changed; pass --execute to apply\n"
    assert offsets(cli, group) == {0: 10}

    executed = cli("group", "reset-offsets", group, "--to", "earliest", "--execute")
    assert (executed.stdout, executed.stderr) == (previewed.stdout, "")
    assert offsets(cli, group) == {0: 0}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (["--to", "earliest"], {0: 0, 1: 0}),
        (["--to", "latest"], {0: 10, 1: 10}),
        (["--to", "7"], {0: 7, 1: 7}),
        (["--to", "700"], {0: 10, 1: 10}),
        (["--to", "-2"], {0: 8, 1: 8}),
        (["--to", "1970-01-01T00:00:04Z"], {0: 4, 1: 4}),
        (["--to", "15m"], {0: 10, 1: 10}),
        (["--shift-by", "-4"], {0: 6}),
        (["--shift-by", "-400"], {0: 0}),
    ],
)
def test_a_group_is_reset_to_the_given_position(
    cli: Cli, group: str, where: list[str], expected: dict[int, int]
) -> None:
    cli("group", "reset-offsets", group, *where, "-t", group, "--execute")
    assert offsets(cli, group) == expected


def test_offsets_are_exported_to_a_file_and_imported(cli: Cli, group: str, tmp_path: Path) -> None:
    cli("group", "reset-offsets", group, "--to", "3", "-t", f"{group}:1", "--execute")
    exported = cli("group", "export-offsets", group).stdout
    assert exported == f"{group},0,10\n{group},1,3\n"
    assert cli("group", "export-offsets", group, "--file", "o.csv").stderr == "2 offsets written to o.csv\n"
    assert (tmp_path / "o.csv").read_text() == exported

    cli("group", "reset-offsets", group, "--to", "earliest", "--execute")
    cli("group", "reset-offsets", group, "--from-file", "o.csv", "--execute")
    assert offsets(cli, group) == {0: 10, 1: 3}


def test_offsets_of_given_topics_are_deleted(cli: Cli, group: str) -> None:
    cli("group", "reset-offsets", group, "--to", "3", "-t", group, "--execute")
    assert cli("group", "delete-offsets", group, "-t", f"{group}:0", "-y").stdout == f"{group}-0 forgotten\n"
    assert offsets(cli, group) == {1: 3}


def test_an_active_group_is_not_reset(cli: Cli, group: str) -> None:
    def reset() -> tuple[str, str]:
        previewed = cli("group", "reset-offsets", group, "--to", "earliest").stderr
        refused = cli("group", "reset-offsets", group, "--to", "earliest", "--execute", exit_code=1).stderr
        return previewed, refused

    async def scenario() -> tuple[str, str]:
        async with (
            Client(cli.servers) as client,
            client.consumer(group, group=group, auto_offset_reset="earliest", auto_commit=False) as consumer,
        ):
            await consumer.poll()
            return await asyncio.to_thread(reset)

    previewed, refused = asyncio.run(scenario())
    problem = f"ottla: group {group!r} is Stable with 1 member; stop its members first\n"
    assert previewed == problem + "nothing was changed; pass --execute to apply\n"
    assert refused == problem
    assert offsets(cli, group) == {0: 10}


def test_deleting_asks_for_confirmation(cli: Cli, group: str) -> None:
    assert "nothing was changed" in cli("group", "delete", group, given="n\n", exit_code=1).stderr
    assert "nothing was changed" in cli("group", "delete-offsets", group, "-t", group, given="n\n", exit_code=1).stderr
    assert offsets(cli, group) == {0: 10}


@pytest.mark.parametrize(
    ("arguments", "exit_code", "sentence"),
    [
        (["reset-offsets", "g"], 2, "give one of --to, --shift-by and --from-file"),
        (["reset-offsets", "g", "--to", "end", "--shift-by", "1"], 2, "give one of --to"),
        (["reset-offsets", "g", "--to", "soon"], 2, "--to: expected"),
        (
            ["reset-offsets", "g", "--to", "end"],
            1,
            "group 'g' has committed no offsets there; name topics with --topic",
        ),
        (["reset-offsets", "g", "--to", "end", "-t", "a:x"], 2, "--topic: expected TOPIC or TOPIC:0,1,2, got 'a:x'"),
        (["reset-offsets", "g", "--to", "end", "-t", "not-there"], 1, "topic 'not-there': UNKNOWN_TOPIC"),
        (["reset-offsets", "g", "--from-file", "no.csv"], 2, "invalid value for '--from-file'"),
        (["export-offsets", "g"], 1, "group 'g' has committed no offsets"),
        (["describe", "g"], 1, "cannot describe group 'g': GROUP_ID_NOT_FOUND"),
        (["delete", "g", "-y"], 1, "cannot delete group 'g': GROUP_ID_NOT_FOUND"),
        (["delete-offsets", "g", "-y"], 2, "missing option '-t' / '--topic'"),
    ],
)
def test_invalid_usage_is_a_one_line_error(cli: Cli, arguments: list[str], exit_code: int, sentence: str) -> None:
    assert cli.refuses("group", *arguments, exit_code=exit_code).startswith(sentence)


def test_a_file_without_offsets_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_bytes(b"\xff")
    assert cli.refuses("group", "reset-offsets", "g", "--from-file", "o.csv", exit_code=2).endswith("read as text")
    (tmp_path / "o.csv").write_text("orders,0\n")
    refused = cli.refuses("group", "reset-offsets", "g", "--from-file", "o.csv", "--execute", exit_code=2)
    assert refused.startswith("o.csv, line 1: expected topic,partition,offset")


def test_the_settings_of_a_group_are_shown_and_changed(cli: Cli, name: str) -> None:
    assert cli("group", "config", name, "--set", "dead.letter.topic=dead").exit_code == 0
    settings = {row["setting"]: row for row in cli.json("group", "config", name)}
    assert settings["dead.letter.topic"]["value"] == "dead"
    assert settings["dead.letter.topic"]["source"] == "group"
    assert settings["share.delivery.count.limit"]["value"] == "5"
    settings = {row["setting"]: row for row in cli.json("group", "config", name, "--unset", "dead.letter.topic")}
    assert settings["dead.letter.topic"]["value"] == ""
    assert "INVALID_CONFIG" in cli.refuses("group", "config", name, "--set", "dead.letters=x", exit_code=1)


@contextmanager
def sharing(cli: Cli, name: str, topic: str) -> Iterator[ShareMember]:
    """The one member of a share group, which has fetched the first three records of each partition."""
    cli("group", "config", name, "--set", "share.auto.offset.reset=earliest")
    with RawClient(cli.servers) as client:
        [about] = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=topic),))).topics
        member = ShareMember(client, name, topic, about.topic_id)
        member.fetch(max_records=3)
        yield member


def test_a_share_group_is_described_with_its_members_and_lag(cli: Cli, group: str) -> None:
    name = f"{group}-shared"
    with sharing(cli, name, group) as member:
        assert member.acknowledge(1, 1, ACCEPT) == 0
        [described] = cli.json("group", "describe", name)
    assert (described["type"], described["state"], described["lag"]) == ("share", "Stable", 19)
    assert [(row["committed"], row["end"], row["lag"]) for row in described["partitions"]] == [(0, 10, 9), (0, 10, 10)]
    assert described["members"][0]["partitions"] == [f"{group}-0", f"{group}-1"]


@pytest.fixture
def shared(cli: Cli, group: str) -> str:
    """An empty share group that has acknowledged the first two records of partition 0 of the topic `group`."""
    name = f"{group}-shared"
    with sharing(cli, name, group) as member:
        assert member.acknowledge(0, 1, ACCEPT) == 0
        refused = cli.refuses("group", "reset-offsets", name, "--to", "earliest", "--execute", exit_code=1)
        assert "Stable with 1 member; stop its members first" in refused
        member.heartbeat(epoch=-1)
    assert offsets(cli, name) == {0: 2, 1: 0}
    return name


def test_a_share_group_is_reset_like_any_other(cli: Cli, shared: str, tmp_path: Path) -> None:
    before = tmp_path / "before.csv"
    cli("group", "export-offsets", shared, "--file", str(before))
    cli("group", "reset-offsets", shared, "--to", "latest")
    assert offsets(cli, shared) == {0: 2, 1: 0}, "it was a preview"
    cli("group", "reset-offsets", shared, "--to", "latest", "--execute")
    assert offsets(cli, shared) == {0: 10, 1: 10}
    cli("group", "reset-offsets", shared, "--shift-by", "-3", "--execute")
    assert offsets(cli, shared) == {0: 7, 1: 7}
    cli("group", "reset-offsets", shared, "--from-file", str(before), "--execute")
    assert offsets(cli, shared) == {0: 2, 1: 0}


def test_share_group_offsets_are_deleted_by_topic(cli: Cli, group: str, shared: str) -> None:
    refused = cli.refuses("group", "delete-offsets", shared, "-t", f"{group}:0", "-y", exit_code=2)
    assert "only whole topics can be deleted" in refused
    assert cli("group", "delete-offsets", shared, "-t", group, "-y").stdout == f"{group} forgotten\n"
    assert offsets(cli, shared) == {}
