"""A killed group member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

import ottla
from ottla.broker.settings import Settings
from ottla.groups.config import GroupConfig
from ottla.net.config import NetConfig

from .adapters.base import ConsumerOptions, values
from .making import receive
from .processes import Process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.core.ids import TopicPartition

    from .adapters.base import Client

SESSION_TIMEOUT_MS: Final = 1_000


@pytest.fixture(scope="module")
def broker() -> Iterator[ottla.Broker]:
    """A broker that allows short session timeouts."""
    groups = GroupConfig(min_session_timeout_ms=SESSION_TIMEOUT_MS)
    with ottla.Broker(settings=Settings(net=NetConfig(port=0), groups=groups)) as broker:
        yield broker


def test_a_killed_member_is_replaced_after_its_session_timeout_and_its_commits_are_used(
    client: Client, servers: str, topic: str, at: TopicPartition
) -> None:
    with client.producer(servers) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number)
        producer.flush()
    arguments = ("tests.clients.member_process", client.name, servers, topic, topic, str(SESSION_TIMEOUT_MS))
    options = ConsumerOptions(group=topic, session_timeout_ms=SESSION_TIMEOUT_MS)
    with Process(*arguments) as killed, client.consumer(servers, options) as heir:
        killed.kill()
        heir.subscribe(topic)
        assert values(receive(heir, 5)) == [b"%d" % number for number in range(5, 10)]
        assert heir.assignment() == {at}
