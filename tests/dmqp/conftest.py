"""A real server for the tests of a module, and names that no other test uses."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from .serving import DmqpBroker

if TYPE_CHECKING:
    from collections.abc import Iterator

_numbers = count(1)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DmqpBroker]:
    with DmqpBroker(tmp_path_factory.mktemp("broker")) as served:
        yield served


@pytest.fixture
def topic() -> str:
    """A name that no other test uses."""
    return f"jobs-{next(_numbers)}"
