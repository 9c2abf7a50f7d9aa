from __future__ import annotations

import asyncio

import pytest

import ottla
from ottla.broker.settings import Settings
from ottla.cli.checks.brokers import check_brokers, judge_advertised, judge_silence
from ottla.cli.checks.findings import Judgement
from ottla.cli.connecting import Reach
from ottla.cli.profiles import Profile
from ottla.client.errors import ClientError, ConnectFailed
from ottla.client.view import BrokerAddress
from ottla.core.ids import Address
from ottla.net.config import NetConfig


@pytest.mark.parametrize(
    ("asked", "told", "answer", "judgement", "text"),
    [
        ("a", "a", "id", Judgement.OK, "it advertises a:9092, the address that was asked"),
        ("a", "b", "id", Judgement.OK, "it advertises b:9092, and answers there"),
        ("localhost", "127.0.0.1", "id", Judgement.OK, "it advertises 127.0.0.1:9092, and answers there"),
        ("a", "0.0.0.0", "id", Judgement.WRONG, "it advertises 0.0.0.0:9092, which clients cannot connect to"),  # noqa: S104
        ("a", "::", "id", Judgement.WRONG, "it advertises [::]:9092, which clients cannot connect to"),
        ("a", "127.0.0.1", "id", Judgement.WRONG, "it advertises 127.0.0.1:9092, which on other machines"),
        ("a", "localhost", "id", Judgement.WRONG, "it advertises localhost:9092, which on other machines"),
        ("a", "b", "other", Judgement.WRONG, "it advertises b:9092, where another cluster answers"),
        ("a", "b", ConnectFailed("no"), Judgement.WRONG, "it advertises b:9092, and connecting there failed: no"),
    ],
)
def test_an_advertised_address_must_lead_other_machines_to_the_same_cluster(
    asked: str, told: str, answer: str | ClientError, judgement: Judgement, text: str
) -> None:
    finding = judge_advertised([Address(asked, 9092)], BrokerAddress(3, told, 9092), answer, "id")
    assert (finding.subject, finding.judgement) == ("broker 3", judgement)
    assert finding.text.startswith(text)


def test_an_unreachable_broker_is_an_error_only_if_it_was_named() -> None:
    assert judge_silence("a:1", "refused", is_chosen=True).judgement is Judgement.WRONG
    assert judge_silence("a:1", "refused", is_chosen=False).judgement is Judgement.NOTE


def test_a_broker_with_a_wrong_advertised_address_is_detected() -> None:
    async def scenario() -> None:
        settings = Settings()._replace(net=NetConfig(port=0, advertised="127.0.0.1:1"))
        async with ottla.Broker(settings=settings) as broker:
            port = broker.broker.listener.address.port
            [answers, told] = await check_brokers(Reach(Profile(servers=f"127.0.0.1:{port}")))
            assert answers.text == f"127.0.0.1:{port} answers, as one of 1"
            assert told.judgement is Judgement.WRONG
            assert told.text.startswith("it advertises 127.0.0.1:1, and connecting there failed: cannot connect")

    asyncio.run(scenario())
