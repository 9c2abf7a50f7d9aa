"""Three nodes, replication factor 3, `acks=all`, `min.insync.replicas=2`: ours on ZooKeeper, and Apache Kafka's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from statistics import median
from typing import Self

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from interop.kafka_artifacts import kafka_artifacts
from interop.kafka_broker import CLUSTER_ID
from interop.kafka_tools import run_tool

from bench.report import Row, against, percentile, speed
from bench.sides import KAFKA_JVM, free_port
from ottla.cluster.server import ZooKeeperServer

NODES = 3
PARTITIONS = 6
SIZE = 1000
COUNT = 60_000
ROUNDS = 3
ALONE = 1_000
TOPIC = "bench"
START_S = 120
# Three on one machine: each gets half of what Kafka's own start script would give it.
JVM = ("-Xmx512M", "-Xms512M", *KAFKA_JVM[2:])


class Nodes(ABC):
    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="bench-cluster-"))
        self.ports = [free_port() for _ in range(NODES)]
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    @abstractmethod
    def commands(self) -> list[list[str]]: ...

    def __enter__(self) -> Self:
        for command in self.commands():
            self._processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        self._wait_until_all_are_there()
        return self

    def _wait_until_all_are_there(self) -> None:
        deadline_s = time.monotonic() + START_S
        while True:
            try:
                told = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0}).list_topics(timeout=5)
                if len(told.brokers) == NODES and told.controller_id >= 0:
                    return
            except Exception:
                if time.monotonic() > deadline_s:
                    raise
            time.sleep(0.2)

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(60)
        shutil.rmtree(self.folder, ignore_errors=True)


class OttlaNodes(Nodes):
    def __init__(self, python: str = sys.executable) -> None:
        super().__init__()
        self._python = python

    def kill(self, number: int) -> None:
        self._processes[number - 1].kill()

    def commands(self) -> list[list[str]]:
        self._zookeeper = ZooKeeperServer(self.folder / "zookeeper", free_port())
        self._zookeeper.start()
        serve = [self._python, "-m", "ottla", "serve", "--zookeeper", self._zookeeper.address, "--http-port", "-1"]
        return [
            [*serve, "--node-id", str(number), "--port", str(port), "--data-dir", str(self.folder / str(number))]
            for number, port in enumerate(self.ports, 1)
        ]

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._zookeeper.stop()


class KafkaNodes(Nodes):
    def commands(self) -> list[list[str]]:
        kafka = kafka_artifacts()
        controllers = [free_port() for _ in range(NODES)]
        voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(controllers, 1))
        commands = []
        for number, (port, controller) in enumerate(zip(self.ports, controllers, strict=True), 1):
            settings = self.folder / f"{number}.properties"
            settings.write_text(
                f"process.roles=broker,controller\nnode.id={number}\ncontroller.listener.names=CONTROLLER\n"
                f"controller.quorum.voters={voters}\nlog.dirs={self.folder / str(number)}\n"
                f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n"
                "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
            )
            done = run_tool(kafka, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(settings))
            if done.exit_code != 0:
                raise RuntimeError(f"Kafka did not format its folder: {done.stdout}{done.stderr}")
            commands.append([str(kafka.java), *JVM, "-cp", f"{kafka.jars}/*", "kafka.Kafka", str(settings)])
        return commands


def create_topic(nodes: Nodes) -> None:
    admin = AdminClient({"bootstrap.servers": nodes.bootstrap, "log_level": 0})
    topic = NewTopic(TOPIC, PARTITIONS, NODES, config={"min.insync.replicas": "2"})
    admin.create_topics([topic])[TOPIC].result(60)


def producer(nodes: Nodes, linger_ms: int) -> Producer:
    settings = {"acks": "all", "enable.idempotence": True, "linger.ms": linger_ms, "log_level": 0}
    return Producer({**settings, "bootstrap.servers": nodes.bootstrap, "queue.buffering.max.messages": COUNT})


def records_per_s(nodes: Nodes) -> float:
    sender, value = producer(nodes, linger_ms=5), os.urandom(SIZE)
    sender.list_topics(TOPIC, timeout=30)
    failed: list[object] = []
    began = time.perf_counter()
    for number in range(COUNT):
        sender.produce(
            TOPIC, value, partition=number % PARTITIONS, on_delivery=lambda error, _: error and failed.append(error)
        )
        if number % 500 == 0:
            sender.poll(0)
    assert sender.flush(120) == 0
    assert not failed, failed[0]
    return COUNT / (time.perf_counter() - began)


def waits_us(nodes: Nodes) -> list[float]:
    """One record after the other, each waited for."""
    sender = producer(nodes, linger_ms=0)
    waits = []
    for number in range(ALONE):
        began = time.perf_counter()
        sender.produce(TOPIC, b"v" * 100, partition=number % PARTITIONS)
        assert sender.flush(30) == 0
        waits.append((time.perf_counter() - began) * 1e6)
    return sorted(waits)


def rows() -> list[Row]:
    # One cluster at a time: six nodes would measure how they share the machine.
    measured = []
    for kind in (OttlaNodes, KafkaNodes):
        with kind() as nodes:
            create_topic(nodes)
            records_per_s(nodes)  # to warm up
            fastest = median(records_per_s(nodes) for _ in range(ROUNDS))
            waits_us(nodes)
            measured.append((fastest, waits_us(nodes)))
    (ours, our_waits), (theirs, their_waits) = measured
    return [
        speed(f"{SIZE} B records, {PARTITIONS} partitions", ours / 1e3, theirs / 1e3, "k/s", at_least=0.7),
        against("one record, p50", percentile(our_waits, 0.5), percentile(their_waits, 0.5), at_most=1.0),
        against("one record, p99", percentile(our_waits, 0.99), percentile(their_waits, 0.99)),
    ]
