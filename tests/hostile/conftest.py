from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.broker.raw_client import RawClient

from .probed import Probed

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Probed]:
    """A broker that anybody may use, in a process of its own."""
    with Probed(tmp_path_factory.mktemp("probed"), "--http-port", "0") as probed:
        yield probed


@pytest.fixture
def client(probed: Probed) -> Iterator[RawClient]:
    with RawClient(probed.address, patience_s=60.0) as client:
        yield client
