from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.broker.raw_client import RawClient
from tests.broker.transacting import Transactional

import ottla
from ottla.client.errors import ProducerFenced
from ottla.transactions.decisions import Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conftest import Cli


@pytest.fixture
def producer(cli: Cli, name: str) -> Iterator[ottla.Producer]:
    """A producer whose transactional id equals its topic's name."""
    cli("topic", "create", name, "-p", "2")
    with ottla.Producer(cli.servers, transactional_id=name) as producer:
        yield producer


def test_a_transaction_is_listed_and_described(cli: Cli, name: str, producer: ottla.Producer) -> None:
    with producer.transaction():
        producer.send(name, b"1", partition=1)
        producer.flush()
        [listed] = cli.json("transaction", "list", "--pattern", f"{name[:10]}.*{name[-5:]}")
        assert (listed["transactional_id"], listed["state"], listed["coordinator"]) == (name, "Ongoing", 0)
        assert cli.json("transaction", "list", "--state", "CompleteAbort", "--producer-id", "77") == []
        assert cli.json("transaction", "list", "--pattern", name, "--longer-than", "1h") == []
        [described] = cli.json("transaction", "describe", name)
        assert described["partitions"] == [f"{name}-1"]
        assert described["running_s"] is not None
        assert described["timeout_ms"] == 60_000
    [described] = cli.json("transaction", "describe", name)
    assert (described["state"], described["partitions"], described["running_s"]) == ("CompleteCommit", [], None)
    assert "TRANSACTIONAL_ID_NOT_FOUND" in cli.refuses("transaction", "describe", "nobody", exit_code=1)
    assert cli("transaction", "list", "--pattern", name).stdout.startswith("TRANSACTIONAL ID")


def test_the_producers_of_a_partition_are_shown(cli: Cli, name: str, producer: ottla.Producer) -> None:
    with producer.transaction():
        producer.send(name, b"1", partition=0)
        producer.flush()
        [row] = cli.json("transaction", "producers", name, "--open")
        assert (row["partition"], row["transaction_start"], row["epoch"]) == (0, 0, 0)
    assert cli.json("transaction", "producers", f"{name}:0", "--open") == []
    assert len(cli.json("transaction", "producers", f"{name}:0")) == 1


def test_a_producers_transaction_is_aborted_by_its_name(cli: Cli, name: str, producer: ottla.Producer) -> None:
    with pytest.raises(ProducerFenced), producer.transaction():  # noqa: PT012
        producer.send(name, b"never seen", partition=0)
        producer.flush()
        assert cli("transaction", "abort", name, "-y").stdout == f"{name} aborted\n"
    [described] = cli.json("transaction", "describe", name)
    assert described["state"] in ("Empty", "CompleteAbort")
    assert "TRANSACTIONAL_ID_NOT_FOUND" in cli.refuses("transaction", "abort", "nobody", "-y", exit_code=1)


def test_a_transaction_known_to_its_coordinator_is_not_hanging(cli: Cli, name: str, producer: ottla.Producer) -> None:
    with producer.transaction():
        producer.send(name, b"1", partition=0)
        producer.flush()
        assert cli.json("transaction", "find-hanging", "-t", name, "--older-than", "0s") == []
        assert cli("transaction", "find-hanging", "-t", name).stderr == "no hanging transactions\n"


def test_a_transaction_unknown_to_its_coordinator_is_hanging_until_aborted(
    cli: Cli, name: str, running_broker: ottla.Broker
) -> None:
    cli("topic", "create", name)
    with RawClient(cli.servers) as client:
        Transactional(client, name).write(name, b"1")

    async def forget() -> None:
        running_broker.broker.transactions.rules.apply(Change(name, None))

    running_broker.call(forget())

    [row] = cli.json("transaction", "find-hanging", "--older-than", "0s")
    assert (row["topic"], row["transaction_start"]) == (name, 0)
    assert cli("transaction", "find-hanging", "--older-than", "0s").stdout.startswith("TOPIC")
    place = ("--topic", f"{name}:0", "--start-offset")
    assert "starts at offset 7" in cli.refuses("transaction", "abort", *place, "7", "-y", exit_code=1)
    assert cli("transaction", "abort", *place, "0", "-y").stdout == f"{name}:0 at 0 aborted\n"
    assert cli.json("transaction", "find-hanging", "--older-than", "0s") == []


def test_the_transaction_to_abort_must_be_named_in_exactly_one_way(cli: Cli) -> None:
    for wrong in ((), ("a", "--topic", "t:0", "--start-offset", "1"), ("--topic", "t:0")):
        assert "TRANSACTIONAL_ID" in cli.refuses("transaction", "abort", *wrong, exit_code=2)
