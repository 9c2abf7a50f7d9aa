"""A real broker for the tests of a module, and a raw client for each test."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

import ottla

from .making import create_topic
from .raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Iterator

_numbers = count(1)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ottla.Broker]:
    """One for all tests of a module: they keep apart by the names of their topics."""
    with ottla.Broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture
def client(broker: ottla.Broker) -> Iterator[RawClient]:
    with RawClient(broker.bootstrap_servers) as client:
        yield client


@pytest.fixture
def name() -> str:
    """Of a topic or group that no other test knows."""
    return f"test-{next(_numbers)}"


@pytest.fixture
def topic(client: RawClient, name: str) -> str:
    """The name of a topic with one partition."""
    create_topic(client, name)
    return name
