"""A Kafka Connect worker in distributed mode, with exactly-once sources; it is killed, and so is the broker."""

import http.client
import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.client.producer.reading import values
from tests.clients.processes import Server

import ottla
from interop.kafka_artifacts import KafkaArtifacts
from interop.processes import ended
from ottla.client.admin.configs import ConfigResource

LINES = 200
POLL_S = 0.1
PATIENCE_S = 60
WORKER = {
    "group.id": "connect",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "1",
    "status.storage.replication.factor": "1",
    "status.storage.partitions": "1",
    "exactly.once.source.support": "enabled",
    "offset.flush.interval.ms": "200",
    "scheduled.rebalance.max.delay.ms": "0",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "500",
    "reconnect.backoff.max.ms": "100",
    "plugin.discovery": "service_load",
}
# A killed one cannot say goodbye, and its successor should not have to wait for its session to end.
KNOWN_MEMBER = {"consumer.override.group.instance.id": "only"}


def test_lines_pass_through_a_source_and_a_sink_despite_kills(kafka: KafkaArtifacts, tmp_path: Path) -> None:
    read, written = tmp_path / "read.txt", tmp_path / "written.txt"
    read.touch()
    with Server(tmp_path / "data") as server, ottla.Admin(server.address) as admin:
        admin.create_topic("lines")
        with _worker(kafka, server, tmp_path) as worker:
            worker.create("source", "FileStreamSourceConnector", file=str(read), topic="lines")
            worker.create("sink", "FileStreamSinkConnector", file=str(written), topics="lines", **KNOWN_MEMBER)
            lines = _append_lines(read, 0)
            _wait_until(lambda: _lines(written) == lines, worker)
            server.restart("kill")
            lines += _append_lines(read, 1)
            _wait_until(lambda: set(_lines(written)) == set(lines), worker)
        lines += _append_lines(read, 2)
        with _worker(kafka, server, tmp_path) as worker:
            _wait_until(lambda: set(_lines(written)) == set(lines), worker)
            assert worker.tasks("source") == worker.tasks("sink") == ["RUNNING"]
        assert values(server.address, "lines") == [line.encode() for line in lines]
        for topic in ("connect-configs", "connect-offsets", "connect-status"):
            assert admin.describe_configs(ConfigResource.topic(topic))["cleanup.policy"].value == "compact"


class Worker:
    def __init__(self, port: int, report: Path) -> None:
        self.report = report
        self._port = port

    def create(self, name: str, kind: str, **config: str) -> None:
        whole = {"connector.class": f"org.apache.kafka.connect.file.{kind}", "tasks.max": "1", **config}
        _wait_until(lambda: self._is_answered("POST", "/connectors", {"name": name, "config": whole}), self)

    def tasks(self, name: str) -> list[str]:
        return [task["state"] for task in self._ask("GET", f"/connectors/{name}/status")["tasks"]]

    def is_ready(self) -> bool:
        """Its own check: it has joined its group and read its configs."""
        return self._is_answered("GET", "/health")

    def _is_answered(self, method: str, path: str, body: object = None) -> bool:
        try:
            self._ask(method, path, body)
        except OSError:
            return False
        return True

    def _ask(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
        data = None if body is None else json.dumps(body)
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_S)
        with closing(connection):
            connection.request(method, path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            if answer.status >= http.client.BAD_REQUEST:  # a worker that starts or rebalances asks to come again
                raise ConnectionError(answer.read())
            return json.load(answer)


@contextmanager
def _worker(kafka: KafkaArtifacts, server: Server, folder: Path) -> Iterator[Worker]:
    """It is killed at the end."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    properties = {"bootstrap.servers": server.address, "listeners": f"http://127.0.0.1:{port}", **WORKER}
    file, report = folder / "worker.properties", folder / "worker.log"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    command = kafka.command("org.apache.kafka.connect.cli.ConnectDistributed", [str(file)], "-Xmx256m")
    with (
        report.open("ab") as told,
        subprocess.Popen(command, stdout=told, stderr=subprocess.STDOUT) as process,
        ended(process),
    ):
        worker = Worker(port, report)
        _wait_until(worker.is_ready, worker)
        yield worker


def _append_lines(file: Path, turn: int) -> list[str]:
    lines = [f"{turn}-{number}" for number in range(LINES)]
    with file.open("a") as target:
        target.writelines(f"{line}\n" for line in lines)
    return lines


def _lines(file: Path) -> Sequence[str]:
    return file.read_text().splitlines() if file.exists() else []


def _wait_until(is_reached: Callable[[], bool], worker: Worker) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_reached():
        assert time.monotonic() < deadline, worker.report.read_text()[-3000:]
        time.sleep(POLL_S)
