from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import ottla.testing
from ottla.schema import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.testing.ephemeral import EphemeralBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[EphemeralBroker]:
    with ottla.testing.broker() as broker:
        yield broker


@pytest.fixture
def registry(broker: EphemeralBroker) -> Registry:
    return Registry(broker.schema_registry_url)
