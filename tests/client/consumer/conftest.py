"""Fixtures: a broker, and unique topics."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
from tests.broker.raw_client import RawClient

import ottla

if TYPE_CHECKING:
    from collections.abc import Iterator

_numbers = count(1)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ottla.Broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def raw(servers: str) -> Iterator[RawClient]:
    """A second client, used for writing."""
    with RawClient(servers) as client:
        yield client


@pytest.fixture
def name() -> str:
    return f"topic-{next(_numbers)}"
