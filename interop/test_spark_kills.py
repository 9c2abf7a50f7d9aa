"""Drivers and workers of Spark are killed while they write to a topic, and each row is there once."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ottla import Admin, Consumer, Producer, TopicPartition
from ottla.broker.embedded import EmbeddedBroker

pytestmark = pytest.mark.timeout(900)
pytest.importorskip("pyspark", reason="pyspark is not installed")

ROWS = 10_000
DRIVER = Path(__file__).with_name("spark_driver.py")


def written(servers: str, sink: str) -> int:
    with Admin(servers) as admin:
        ends = admin.latest_offsets([TopicPartition(sink, 0), TopicPartition(sink, 1)])
    return sum(end.offset for end in ends.values())


def start(servers: str, folder: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, str(DRIVER), servers, "source", "sink", str(folder / "checkpoint")]
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE)


def test_every_row_is_written_once_whenever_the_driver_is_killed(tmp_path: Path) -> None:
    chance = random.Random(5)
    with EmbeddedBroker() as broker:
        servers = broker.bootstrap_servers
        with Admin(servers) as admin:
            for topic in ("source", "sink"):
                admin.create_topic(topic, partitions=2)
        with Producer(servers) as producer:
            for number in range(ROWS):
                producer.send("source", b"%d" % number, key=b"%d" % number)
        for _ in range(3):
            enough = written(servers, "sink") + chance.randrange(1, 1500)
            driver = start(servers, tmp_path)
            # At whatever point it is just then: between rows, between tasks, before or after a commit.
            while written(servers, "sink") < enough and driver.poll() is None:
                time.sleep(0.01)
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
        last = start(servers, tmp_path)
        said, _ = last.communicate()

        assert said.strip().endswith(b"done")
        with Consumer(servers, ["sink"], auto_offset_reset="earliest") as consumer:
            values: list[int] = []
            while records := consumer.poll(max_records=ROWS, timeout_ms=1000):
                values += [int(record.value) for record in records if record.value is not None]
        assert sorted(values) == list(range(ROWS))
