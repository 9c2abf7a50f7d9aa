from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.cli.checks.findings import Judgement
from ottla.cli.checks.ports import (
    Port,
    State,
    check_http_port,
    check_kafka_port,
    judge_configured,
    judge_port,
    try_port,
)
from ottla.client.admin.cluster import ClusterDescription
from ottla.client.view import BrokerAddress
from ottla.net.config import NetConfig

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize(
    ("state", "answer", "judgement"),
    [
        (State.FREE, None, Judgement.OK),
        (State.TAKEN, "Ottla", Judgement.OK),
        (State.TAKEN, None, Judgement.WRONG),
        (State.FORBIDDEN, None, Judgement.WRONG),
        (State.NO_SUCH_HOST, None, Judgement.WRONG),
    ],
)
def test_a_port_is_fine_if_it_is_free_or_used_by_our_broker(
    state: State, answer: str | None, judgement: Judgement
) -> None:
    finding = judge_port(Port("net.port", "127.0.0.1", 9092, state, answer))
    assert (finding.subject, finding.judgement) == ("port 9092", judgement)
    assert (finding.fix is None) == (judgement is Judgement.OK)


def test_a_port_is_checked_by_listening_on_it(taken: int) -> None:
    assert try_port("127.0.0.1", taken)[0] is State.TAKEN
    assert try_port("127.0.0.1", 0)[0] is State.FREE
    assert try_port("192.0.2.1", 9092)[0] is State.NO_SUCH_HOST
    assert try_port("no-such-host.invalid", 9092)[0] is State.NO_SUCH_HOST


def test_no_port_no_finding() -> None:
    assert check_http_port("127.0.0.1", -1) == []
    assert asyncio.run(check_kafka_port(NetConfig(port=0))) == []


def test_a_program_that_closes_the_connection_is_not_a_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]

        async def scenario() -> list[Judgement]:
            server = await asyncio.start_server(lambda _, writer: writer.close(), sock=mute)
            async with server:
                return [finding.judgement for finding in await check_kafka_port(NetConfig(port=port))]

        assert asyncio.run(scenario()) == [Judgement.WRONG]


def test_a_running_broker_is_recognised_and_its_advertised_address_checked() -> None:
    async def scenario() -> None:
        async with ottla.Broker() as broker:
            host, _, port = broker.bootstrap_servers.rpartition(":")
            [found] = await check_kafka_port(NetConfig(host=host, port=int(port)))
            assert (found.judgement, found.text) == (Judgement.OK, "a Kafka broker answers there")
            net = NetConfig(host=host, port=int(port), advertised="localhost:1")
            [_, told] = await check_kafka_port(net)
            assert told.judgement is Judgement.NOTE
            assert told.text == f"net.advertised is localhost:1, but the running broker advertises {host}:{port}"

    asyncio.run(scenario())


def test_the_advertised_address_must_resolve_and_match_the_running_brokers() -> None:
    about = ClusterDescription("id", 0, (BrokerAddress(0, "a.example", 9092),))
    assert judge_configured("a.example:9092", None, None).text == "clients will connect to a.example:9092"
    assert (
        judge_configured("a.example:9092", about, None).text
        == "the running broker advertises a.example:9092, as configured"
    )
    assert judge_configured("b.example:9092", about, None).judgement is Judgement.NOTE
    assert judge_configured("b.example:9092", about, "Name or service not known").judgement is Judgement.WRONG
