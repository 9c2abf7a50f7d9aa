from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.cli.clusters.cluster import summary
from ottla.cli.clusters.moves import offline_replicas, status_rows
from ottla.client.admin.cluster import ClusterDescription
from ottla.client.view import BrokerAddress, PartitionView, TopicView
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition

from .conftest import Cli

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.testing.ephemeral_cluster import EphemeralCluster


def test_the_status_lists_replicas_on_failed_disks_but_not_those_of_absent_nodes() -> None:
    brokers = [BrokerAddress(1, "h", 1), BrokerAddress(2, "h", 2)]
    partitions = {TopicPartition("a", 0): PartitionView(1, 0, (1, 2, 3), (1,), offline=(2, 3))}

    assert offline_replicas(brokers, partitions) == ["a-0 on 2"]
    assert [row["offline"] for row in status_rows(brokers, 1, partitions)] == [0, 1, 1]


def test_the_problems_of_a_cluster_are_counted() -> None:
    well = PartitionView(0, 0, (0, 1), (0, 1))
    lagging = PartitionView(0, 0, (0, 1), (0,))
    leaderless = PartitionView(-1, 0, (1,), (1,))
    topics = [
        TopicView("a", b"", is_internal=False, error=ErrorCode.NONE, partitions={0: well, 1: lagging}),
        TopicView("__a", b"", is_internal=True, error=ErrorCode.NONE, partitions={0: leaderless}),
    ]
    told = summary(ClusterDescription("id", -1, (BrokerAddress(0, "h", 1),)), topics, groups=3)
    assert told == {
        "cluster_id": "id",
        "controller": None,
        "brokers": 1,
        "topics": 1,
        "internal_topics": 1,
        "partitions": 3,
        "groups": 3,
        "partitions_without_a_leader": 1,
        "under_replicated_partitions": 1,
    }


def test_the_cluster_and_its_brokers_are_shown(cli: Cli) -> None:
    told = cli.json("cluster", "describe")
    assert (told["brokers"], told["controller"], told["partitions_without_a_leader"]) == (1, 0, 0)
    assert f"cluster id                   {told['cluster_id']}\n" in cli("cluster", "describe").stdout

    host, _, port = cli.servers.rpartition(":")
    assert cli.json("cluster", "brokers") == [
        {"id": 0, "host": host, "port": int(port), "rack": None, "controller": True}
    ]


def test_settings_of_a_broker_are_shown_and_altered(cli: Cli) -> None:
    assert "listeners" in [row["setting"] for row in cli.json("cluster", "configs", "show")]
    done = cli("cluster", "configs", "alter", "0", "--set", "log.retention.ms=86400000")
    assert done.stdout == "altered: log.retention.ms\n"
    changed = {row["setting"]: row["value"] for row in cli.json("cluster", "configs", "show", "0")}
    assert changed["log.retention.ms"] == "86400000"
    cli("cluster", "configs", "alter", "0", "--unset", "log.retention.ms")
    assert "log.retention.ms" not in cli("cluster", "configs", "show").stdout
    assert "log.retention.ms" in cli("cluster", "configs", "show", "--all-settings").stdout


def test_a_dry_run_alters_nothing(cli: Cli) -> None:
    done = cli("cluster", "configs", "alter", "all", "--set", "log.retention.ms=5", "--dry-run")
    assert done.stdout == "could be altered: log.retention.ms\n"
    assert "log.retention.ms" not in cli("cluster", "configs", "show").stdout


def test_the_default_of_all_brokers_is_shown_and_altered(cli: Cli) -> None:
    cli("cluster", "configs", "alter", "all", "--set", "log.retention.ms=86400000")
    assert [(row["setting"], row["value"]) for row in cli.json("cluster", "configs", "show", "all")] == [
        ("log.retention.ms", "86400000")
    ]
    cli("cluster", "configs", "alter", "all", "--unset", "log.retention.ms")
    assert cli.json("cluster", "configs", "show", "all") == []


def replicas(cli: Cli, topic: str) -> list[list[int]]:
    return [row["replicas"] for row in cli.json("topic", "describe", topic)[0]["partitions"]]


def test_partitions_are_moved_balanced_and_drained(
    ottla_cluster: EphemeralCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cli = Cli(ottla_cluster.bootstrap_servers)
    cli("topic", "create", "t", "--partitions", "3", "--replicas", "1")
    cli("cluster", "reassign", "t", "--to", "1,2", "--wait")
    assert replicas(cli, "t") == [[1, 2], [2, 1], [1, 2]]

    done = cli("cluster", "reassign", "t", "--over", "all", "--wait")
    assert "moves" in done.stdout
    assert sorted(node for nodes in replicas(cli, "t") for node in nodes) == [0, 0, 1, 1, 2, 2]
    assert sorted(nodes[0] for nodes in replicas(cli, "t")) == [0, 1, 2]
    assert "nothing to move" in cli("cluster", "reassign", "--over", "all", "--wait").stderr

    cli("cluster", "drain", "2", "--yes")
    assert {node for nodes in replicas(cli, "t") for node in nodes} == {0, 1}
    assert cli.refuses("cluster", "drain", "9", "--yes", exit_code=2) == "there is no node 9; there are 0, 1, 2"


def test_the_status_of_a_cluster_fails_while_a_partition_has_no_leader(
    ottla_cluster: EphemeralCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cli = Cli(ottla_cluster.bootstrap_servers)
    cli("topic", "create", "t", "--replicas", "1")
    [[holder]] = replicas(cli, "t")
    assert [row["leads"] for row in cli.json("cluster", "status")].count(1) == 1

    ottla_cluster.kill(holder)
    done = cli("cluster", "status", exit_code=1)
    assert done.stderr.endswith("ottla: 1 partitions have no leader\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["t"], "nothing to move: give"),
        (["--to", "1"], "nothing to move: give"),
        (["t", "--to", "1", "--over", "all"], "nothing to move: give"),
        (["t", "--over", "1,x"], "--over: expected numbers such as 1,2,3, got '1,x'"),
        (["--over", "7"], "there is no node 7; there are 0"),
        (["--cancel", "--throttle", "5"], "--throttle needs --to or --over"),
    ],
)
def test_an_ambiguous_move_is_refused(cli: Cli, arguments: list[str], sentence: str) -> None:
    assert cli.refuses("cluster", "reassign", *arguments, exit_code=2).startswith(sentence)


@pytest.mark.parametrize(
    ("arguments", "exit_code", "sentence"),
    [
        (["show", "7"], 2, "there is no broker 7; known: 0"),
        (["show", "x"], 2, "expected a broker id or all"),
        (["alter", "0"], 2, "nothing to alter: give --set or --unset"),
        (["alter", "7", "--unset", "log.retention.ms"], 2, "there is no broker 7; known: 0"),
        (["alter", "x", "--unset", "log.retention.ms"], 2, "expected a broker id or all"),
        (
            ["alter", "0", "--set", "log.retention.ms=soon"],
            2,
            "--set: log.retention.ms: expected a number of ms, or e.g. 30s",
        ),
        (["alter", "0", "--set", "log.cleanup.policy=often"], 1, "cannot alter broker '0': "),
    ],
)
def test_invalid_usage_is_a_one_line_error(cli: Cli, arguments: list[str], exit_code: int, sentence: str) -> None:
    assert cli.refuses("cluster", "configs", *arguments, exit_code=exit_code).startswith(sentence)
