"""Drivers and executors of Spark are killed while they write to a topic, and each row is there once."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla import Admin, Consumer, Producer, TopicPartition
from ottla.broker.embedded import EmbeddedBroker

from .spark_standalone import ENVIRONMENT, executors, standalone_cluster

pytestmark = [pytest.mark.timeout(900), pytest.mark.long]
pytest.importorskip("pyspark", reason="pyspark is not installed")

ROWS = 10_000
DRIVER = Path(__file__).with_name("spark_driver.py")


@pytest.fixture
def servers() -> Iterator[str]:
    with EmbeddedBroker() as broker:
        with Admin(broker.bootstrap_servers) as admin:
            for topic in ("source", "sink"):
                admin.create_topic(topic, partitions=2)
        with Producer(broker.bootstrap_servers) as producer:
            for number in range(ROWS):
                producer.send("source", b"%d" % number, key=b"%d" % number)
        yield broker.bootstrap_servers


def written(servers: str) -> int:
    with Admin(servers) as admin:
        ends = admin.latest_offsets([TopicPartition("sink", 0), TopicPartition("sink", 1)])
    return sum(end.offset for end in ends.values())


def wait_for(servers: str, count: int, driver: "subprocess.Popen[bytes]") -> None:
    """Until this many rows are written: at any point of the driver and its tasks."""
    while written(servers) < count and driver.poll() is None:
        time.sleep(0.01)


def values(servers: str) -> list[int]:
    found: list[int] = []
    with Consumer(servers, ["sink"], auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        while records := consumer.poll(max_records=ROWS, timeout_ms=1000):
            found += [int(record.value) for record in records if record.value is not None]
    return sorted(found)


def start(servers: str, folder: Path, master: str = "local[2]") -> "subprocess.Popen[bytes]":
    command = [sys.executable, str(DRIVER), servers, "source", "sink", str(folder / "checkpoint"), master]
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, env=ENVIRONMENT)


def test_every_row_is_written_once_despite_driver_kills(servers: str, tmp_path: Path) -> None:
    chance = random.Random(5)
    for _ in range(3):
        driver = start(servers, tmp_path)
        wait_for(servers, written(servers) + chance.randrange(1, 1500), driver)
        os.killpg(driver.pid, signal.SIGKILL)
        driver.communicate()
    said, _ = start(servers, tmp_path).communicate()

    assert said.strip().endswith(b"done")
    assert values(servers) == list(range(ROWS))


def test_every_row_is_written_once_when_executors_of_a_cluster_are_killed(servers: str, tmp_path: Path) -> None:
    with standalone_cluster(tmp_path) as (address, workers):
        driver = start(servers, tmp_path, address)
        for _ in range(2):
            wait_for(servers, written(servers) + 1200, driver)
            os.kill(executors(workers)[0], signal.SIGKILL)
        said, _ = driver.communicate()

    assert said.strip().endswith(b"done")
    assert values(servers) == list(range(ROWS))
