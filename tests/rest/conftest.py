"""A real server for the tests of a module, and names that no other test uses."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from .serving import HttpBroker

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

_numbers = count(1)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpBroker]:
    with HttpBroker(tmp_path_factory.mktemp("broker")) as served:
        yield served


@pytest.fixture
def http(served: HttpBroker) -> httpx.Client:
    return served.client


@pytest.fixture
def name() -> str:
    """A topic or group name that no other test uses."""
    return f"test-{next(_numbers)}"


@pytest.fixture
def topic(http: httpx.Client, name: str) -> str:
    """A topic with two partitions."""
    assert http.post("/v1/topics", json={"name": name, "partitions": 2}).status_code == 201
    return name
