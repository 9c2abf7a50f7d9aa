"""From kill -9 of a leader to the next acknowledged record, beyond the session timeout: taken apart, and by client."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import ottla
from bench.report import Row
from ottla.cli.clusters.local import LocalCluster
from ottla.cli.clusters.local_catalog import catalog_in
from ottla.client.errors import ClientError, RequestTimedOut

if TYPE_CHECKING:
    from collections.abc import Callable

TOPIC = "bench"
NODES = 3
ROUNDS = int(os.environ.get("FAILOVER_ROUNDS", "8"))
SESSION_MS = int(os.environ.get("FAILOVER_SESSION_MS", "2000"))
GOAL_S = 1.0
PACE_S = 0.005
PATIENCE_S = 60.0
QUIET = {"log_level": 0}


def until(holds: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline_s:
            raise TimeoutError("the condition did not hold in time")
        time.sleep(PACE_S)


class Writer:
    """Sends a record every few milliseconds, and tracks the send time of the last acknowledged one."""

    def __init__(
        self, send: Callable[[Callable[[], None]], None], poll: Callable[[], object], close: Callable[[], object]
    ) -> None:
        self.acknowledged_s = 0.0
        self._close = close
        self._send = send
        self._poll = poll
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._close()

    def _run(self) -> None:
        while not self._is_over.is_set():
            sent_s = time.monotonic()
            self._send(lambda sent_s=sent_s: self._acknowledged(sent_s))  # type: ignore[misc]
            self._poll()
            time.sleep(PACE_S)

    def _acknowledged(self, sent_s: float) -> None:
        self.acknowledged_s = max(self.acknowledged_s, sent_s)


def confluent_writer(servers: str, topic: str = TOPIC) -> Writer:
    producer = Producer({**QUIET, "bootstrap.servers": servers, "acks": "all", "enable.idempotence": True})

    def send(acknowledged: Callable[[], None]) -> None:
        def told(error: object, _: object) -> None:
            if error is None:
                acknowledged()

        producer.produce(topic, b"v", partition=0, on_delivery=told)

    return Writer(send, lambda: producer.poll(0), lambda: producer.flush(PATIENCE_S))


def ottla_writer(servers: str) -> Writer:
    producer: ottla.Producer[bytes, bytes] = ottla.Producer(servers, producer_batch_timeout_ms=2)
    waiting: list[tuple[Any, Callable[[], None]]] = []

    def poll() -> None:
        while waiting:
            delivery, acknowledged = waiting[0]
            try:
                delivery.result(0)
                acknowledged()
            except RequestTimedOut:
                return
            except ClientError:
                pass
            waiting.pop(0)

    def send(acknowledged: Callable[[], None]) -> None:
        waiting.append((producer.send(TOPIC, b"v", partition=0), acknowledged))

    return Writer(send, poll, producer.close)


class Watcher:
    """Polls every node for the leader as fast as possible."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._admins = {
            node.number: AdminClient({**QUIET, "bootstrap.servers": f"127.0.0.1:{port}"})
            for node, port in zip(cluster.nodes, cluster.ports, strict=True)
        }

    def wait_for_all_nodes(self) -> None:
        until(lambda: all(len(each.list_topics(timeout=5).brokers) == NODES for each in self._admins.values()))

    def partition(self, number: int) -> Any:  # noqa: ANN401 - confluent-kafka has no types
        return self._admins[number].list_topics(TOPIC, timeout=5).topics[TOPIC].partitions.get(0)

    def leader(self) -> int:
        """Once all nodes are in sync, and know it."""
        until(lambda: all((part := self.partition(each)) and len(part.isrs) == NODES for each in self._admins))
        return int(self.partition(1).leader)

    def until_another_leads(self, former: int) -> float:
        number = former % NODES + 1
        until(lambda: self.partition(number).leader not in (former, -1))
        return time.monotonic()


def kill_and_measure(cluster: LocalCluster, watcher: Watcher, writers: dict[str, Writer]) -> dict[str, float]:
    """Seconds beyond the session timeout."""
    leader = watcher.leader()
    node = cluster.nodes[leader - 1]
    assert node.process is not None
    killed_s = time.monotonic()
    node.process.kill()
    elected: list[float] = []
    watching = threading.Thread(target=lambda: elected.append(watcher.until_another_leads(leader)))
    watching.start()
    found: dict[str, float] = {}
    while len(found) < len(writers):
        now_s = time.monotonic()
        found |= {name: now_s for name, each in writers.items() if name not in found and each.acknowledged_s > killed_s}
        if now_s > killed_s + PATIENCE_S:
            raise TimeoutError(f"only {sorted(found)} found the new leader")
        time.sleep(PACE_S)
    watching.join()
    node.process.wait()
    node.start()
    node.wait_until_ready()
    return {name: at_s - killed_s - SESSION_MS / 1000 for name, at_s in {"elected": elected[0], **found}.items()}


def measure() -> list[dict[str, float]]:
    folder = Path(tempfile.mkdtemp(prefix="bench-failover-"))
    catalog = catalog_in(folder, uses_zookeeper=True)
    cluster = LocalCluster(folder, catalog, NODES, (0, -1), ["--set", f"cluster.session_timeout_ms={SESSION_MS}"])
    try:
        cluster.start()
        servers = cluster.bootstrap_servers
        watcher = Watcher(cluster)
        watcher.wait_for_all_nodes()
        topic = NewTopic(TOPIC, 1, NODES, config={"min.insync.replicas": "2"})
        admin = AdminClient({**QUIET, "bootstrap.servers": servers})
        admin.create_topics([topic])[TOPIC].result(PATIENCE_S)
        watcher.leader()
        writers = {"ottla": ottla_writer(servers), "confluent-kafka": confluent_writer(servers)}
        try:
            until(lambda: all(each.acknowledged_s for each in writers.values()))
            return [kill_and_measure(cluster, watcher, writers) for _ in range(ROUNDS)]
        finally:
            for writer in writers.values():
                writer.end()
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def rows() -> list[Row]:
    measured = measure()
    told = {
        "elected": "another leads, as a node that is left says",
        "ottla": "the next record is acknowledged, ottla's client",
        "confluent-kafka": "the next record is acknowledged, confluent-kafka",
    }
    done = []
    for name, what in told.items():
        values = sorted(each[name] for each in measured)
        middle = median(values)
        done.append(
            Row(
                what=f"{what}: beyond a session of {SESSION_MS / 1000:g} s, median of {len(values)}",
                ours=f"{middle:.2f} s ({values[0]:.2f} to {values[-1]:.2f})",
                goal="" if name == "elected" else f"< {GOAL_S:g} s",
                is_reached=None if name == "elected" else middle < GOAL_S,
            )
        )
    return done
