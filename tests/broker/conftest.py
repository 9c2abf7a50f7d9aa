"""A real broker for the tests of a module, and a raw client for each test."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

import ottla
from ottla.broker.settings import Settings

from .making import Topic, create_topic, produce
from .raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .fast_sides import Side

_numbers = count(1)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ottla.Broker]:
    """Shared by the tests of a module, which use different topic names."""
    with ottla.Broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture
def client(broker: ottla.Broker) -> Iterator[RawClient]:
    with RawClient(broker.bootstrap_servers) as client:
        yield client


@pytest.fixture
def name() -> str:
    """A topic or group name that no other test uses."""
    return f"test-{next(_numbers)}"


@pytest.fixture
def topic(client: RawClient, name: str) -> str:
    """The name of a topic with one partition."""
    create_topic(client, name)
    return name


@pytest.fixture
def made(client: RawClient, name: str) -> Topic:
    """A topic with three partitions."""
    return Topic(name, create_topic(client, name, partitions=3))


@pytest.fixture(scope="module")
def filled(broker: ottla.Broker) -> Topic:
    """Five batches of two records of about a kilobyte in partition 0, one small record in each of the others."""
    with RawClient(broker.bootstrap_servers) as client:
        topic = Topic("filled", create_topic(client, "filled", partitions=3))
        for number in range(5):
            produce(client, "filled", b"%d" % (2 * number) * 1000, b"%d" % (2 * number + 1) * 1000)
        produce(client, "filled", b"one", partition=1)
        produce(client, "filled", b"two", partition=2)
    return topic


@pytest.fixture
def durable(tmp_path: Path) -> Iterator[ottla.Broker]:
    """A broker that acknowledges after fsync."""
    settings = Settings()
    settings = settings._replace(net=replace(settings.net, port=0), log=replace(settings.log, flush="ack"))
    with ottla.Broker(tmp_path, settings) as broker:
        yield broker


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    from .fast_sides import Side

    fast, plain = (Side(tmp_path_factory.mktemp(name), is_fast=name == "fast") for name in ("fast", "plain"))
    yield fast, plain
    for side in (fast, plain):
        side.broker.close()


@pytest.fixture
def fast(sides: tuple[Side, Side]) -> Side:
    sides[0].counting.served = 0
    return sides[0]
