"""Fixtures: a broker, and every client."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.core.ids import TopicPartition

from .adapters.aio import Aiokafka
from .adapters.base import Client
from .adapters.confluent import Confluent
from .adapters.kafka_python import KafkaPython
from .adapters.ours import Ottla
from .making import create_topic

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENTS = (Confluent(), KafkaPython(), Aiokafka(), Ottla())

_numbers = count(1)

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Retry a failed test of third-party clients once, because of their races. Tests of Ottla's own client are not.

    Seen: kafka-python that got the response to its SyncGroup and never applied it, although the group was stable.
    """
    for item in items:
        if HERE in item.path.parents and not _has_only_our_client(item):
            item.add_marker(pytest.mark.flaky(reruns=1))


def _has_only_our_client(item: pytest.Item) -> bool:
    parameters = (
        item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
    )
    clients = [value for value in parameters if isinstance(value, Client)]
    return bool(clients) and all(isinstance(client, Ottla) for client in clients)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ottla.Broker]:
    """Shared by the tests of a module, which use different topic names."""
    with ottla.Broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture
def servers(broker: ottla.Broker) -> str:
    return broker.bootstrap_servers


@pytest.fixture(params=CLIENTS, ids=str)
def client(request: pytest.FixtureRequest) -> Client:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def name() -> str:
    """A topic or group name that no other test uses."""
    return f"test-{next(_numbers)}"


@pytest.fixture
def topic(servers: str, name: str) -> str:
    """The name of a topic with one partition."""
    create_topic(servers, name)
    return name


@pytest.fixture
def at(topic: str) -> TopicPartition:
    """The only partition of `topic`."""
    return TopicPartition(topic, 0)
