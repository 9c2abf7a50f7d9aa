"""One real ZooKeeper for all tests of the cluster; each test has a separate folder in it."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

import pytest

from ottla.cluster.server import ZooKeeperServer, find_jars, find_java, free_port
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

_numbers = itertools.count()


def why_there_is_no_zookeeper() -> str | None:
    try:
        find_jars(os.environ)
        find_java(os.environ)
    except ConfigError as missing:
        return str(missing)
    return None


@pytest.fixture(scope="package")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    if reason := why_there_is_no_zookeeper():
        pytest.skip(reason)
    server = ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"), free_port())
    server.start()
    yield server
    server.stop()


@pytest.fixture
def zookeeper(zookeeper_server: ZooKeeperServer) -> str:
    """The path of a new, unused cluster."""
    return f"{zookeeper_server.address}/test-{os.getpid()}-{next(_numbers)}"
