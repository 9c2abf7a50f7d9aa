"""`ottla cluster local`, as a new user runs it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.cli.clusters.local_catalog import BuiltinCatalog, catalog_in
from ottla.client.admin.offsets import FoundOffset
from ottla.client.view import TopicView
from ottla.core.errors import OttlaError

from .conftest import why_there_is_no_zookeeper

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def local(folder: Path, *more: str) -> Iterator[tuple[str, list[int]]]:
    """The brokers' addresses and their processes."""
    command = [sys.executable, "-m", "ottla", "cluster", "local", "--nodes", "2", "--port", "0", "--http-port", "-1"]
    command += ["--data-dir", str(folder), "--set", "cluster.session_timeout_ms=2000", *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        said = [running.stdout.readline() for _ in range(4)]
        try:
            ready = re.fullmatch(r"a cluster of 2 is ready: Kafka on (\S+)\n", said[0])
            assert ready is not None, said
            yield ready[1], [int(line.rsplit(maxsplit=1)[1]) for line in said[1:3]]
        finally:
            running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0


ZOOKEEPER = pytest.param(
    ("--zookeeper",),
    marks=pytest.mark.skipif(bool(why_there_is_no_zookeeper()), reason="needs a ZooKeeper"),
    id="zookeeper",
)


def test_a_port_in_use_is_reported_at_once(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "ottla", "cluster", "local", "--nodes", "1", "--port", str(port)]
        ended = subprocess.run(
            [*command, "--http-port", "-1", "--data-dir", str(tmp_path)], capture_output=True, text=True, check=False
        )

    assert ended.returncode == 1
    assert re.match(rf"ottla: node 1 did not start: .*{port}.*; see \S+broker\.log\n", ended.stderr)


@pytest.mark.parametrize("catalog", [pytest.param((), id="built-in"), ZOOKEEPER])
def test_a_cluster_on_this_machine_survives_the_end_of_a_node_and_a_restart(
    tmp_path: Path, catalog: tuple[str, ...]
) -> None:
    with (
        local(tmp_path, *catalog) as (servers, processes),
        ottla.Admin(servers) as admin,
        ottla.Producer(servers) as producer,
    ):
        admin.create_topic("t", partitions=4)
        [topic] = admin.describe_topics(["t"]).values()
        assert isinstance(topic, TopicView)
        assert all(len(each.replicas) == 2 for each in topic.partitions.values())
        os.kill(processes[1], signal.SIGKILL)
        for number in range(4):
            producer.send("t", b"x", partition=number)
        producer.flush()

    with local(tmp_path) as (servers, _), ottla.Admin(servers) as admin:
        ends = admin.latest_offsets([ottla.TopicPartition("t", number) for number in range(4)])
        assert [found.offset for found in ends.values() if isinstance(found, FoundOffset)] == [1, 1, 1, 1]


def test_the_catalog_of_a_local_cluster_stays_the_one_that_it_was_created_with(tmp_path: Path) -> None:
    catalog = catalog_in(tmp_path, uses_zookeeper=False)
    assert isinstance(catalog, BuiltinCatalog)
    catalog.stop()
    (tmp_path / "catalog").mkdir()
    with pytest.raises(OttlaError, match="was created without ZooKeeper"):
        catalog_in(tmp_path, uses_zookeeper=True)


def test_a_node_whose_local_cluster_has_ended_says_so(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ottla", "serve", "--catalog", str(tmp_path / "gone"), "--port", "0"]
    ended = subprocess.run(
        [*command, "--data-dir", str(tmp_path / "data")], capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 2
    assert "No such file or directory; nodes end with their `ottla cluster local`" in ended.stderr
