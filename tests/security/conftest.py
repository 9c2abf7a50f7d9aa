from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .securing import Secured, secured

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker without ACLs, shared by the tests of a module."""
    with secured(tmp_path_factory.mktemp("secured")) as broker:
        yield broker


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker with ACLs and an admin super user, shared by the tests of a module."""
    folder = tmp_path_factory.mktemp("guarded")
    with secured(folder, acls=True, super_users=("User:admin",)) as broker:
        yield broker
