"""Spark clusters without Ottla installed: the package is shipped, including the compiled codec."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ottla import Admin, Producer
from ottla.broker.embedded import EmbeddedBroker

from .spark_standalone import BARE_ENVIRONMENT, ENVIRONMENT, free_port, standalone_cluster

pytestmark = [pytest.mark.timeout(900), pytest.mark.long]
pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")

ROWS = 1000
PROGRAM = Path(__file__).with_name("spark_shipped.py")
SUBMIT = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")


@pytest.fixture
def servers() -> Iterator[str]:
    with EmbeddedBroker() as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic("source", partitions=2)
        with Producer(broker.bootstrap_servers) as producer:
            for number in range(ROWS):
                producer.send("source", b"%d" % number, key=b"%d" % number)
        yield broker.bootstrap_servers


@contextmanager
def connect_server(master: str, folder: Path) -> Iterator[str]:
    """Spark Connect in front of a cluster, without Ottla too: its address."""
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.executor.memory": "512m",
        "spark.driver.host": "127.0.0.1",
    }
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = [SUBMIT, "--class", server, "--master", master, *options, "spark-internal"]
    with subprocess.Popen(
        command, start_new_session=True, cwd=folder, env=BARE_ENVIRONMENT,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            _wait_for(int(port), process)
            yield f"sc://127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"the server ended with {process.returncode}")


def check(said: str, folder: Path) -> None:
    """All rows are there, and both workers read theirs with the package that came with the job."""
    count, *found = said.split()
    assert int(count) == ROWS
    places = dict(each.rsplit("=", 1) for each in found)
    assert sum(map(int, places.values())) == ROWS
    assert {Path(place).relative_to(folder).parts[0] for place in places} == {"one", "two"}
    assert {Path(place).suffix for place in places} == {".so"}


def test_a_submitted_job_ships_the_package(servers: str, tmp_path: Path) -> None:
    with standalone_cluster(tmp_path, BARE_ENVIRONMENT) as (address, _):
        command = [SUBMIT, "--master", address, str(PROGRAM), servers, address]
        ended = subprocess.run(command, env=ENVIRONMENT, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-4000:]
    check(ended.stdout, tmp_path)


def test_a_spark_connect_client_ships_the_package(servers: str, tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="pyspark[connect] is not installed")
    with standalone_cluster(tmp_path, BARE_ENVIRONMENT) as (address, _), connect_server(address, tmp_path) as connect:
        command = [sys.executable, str(PROGRAM), servers, connect]
        ended = subprocess.run(command, env=ENVIRONMENT, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-4000:]
    check(ended.stdout, tmp_path)
