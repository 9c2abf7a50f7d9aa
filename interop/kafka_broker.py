"""One real Apache Kafka broker (KRaft, broker and controller in one process) on 127.0.0.1."""

import contextlib
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_tools import run_tool

CLUSTER_ID = "b3R0bGEtaW50ZXJvcC1rYQ"
JVM_OPTIONS = ("-Xmx512m", "-Dinterop.level=WARN", "-Dinterop.events.level=INFO")
STARTED = "Kafka Server started"
REPORT_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60

DEFAULTS: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "auto.create.topics.enable": "false",
    # One node, and nothing worth waiting for.
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "background.threads": "2",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.dedupe.buffer.size": "4194304",
}


class KafkaBroker:
    """Formats its folder on the first start, and may be stopped or killed and started again on it.

    `with KafkaBroker(kafka, folder) as broker:` starts it, and stops it cleanly at the end.
    """

    def __init__(
        self,
        kafka: KafkaArtifacts,
        folder: Path,
        properties: Mapping[str, str] | None = None,
        *,
        listeners: Sequence[str] = (),
        format_options: Sequence[str] = (),
        controller: str | None = None,
    ) -> None:
        self.log_dir = folder / "data"
        self.bootstrap = ""
        self.addresses: dict[str, str] = {}
        """Its addresses by name in `listeners`: security protocols besides PLAINTEXT."""
        self.controller = controller or ""
        """Whom brokers of its cluster follow: itself unless it was given another, as `id@host:port`."""
        self._is_controller = controller is None
        self._listeners = listeners
        self._format_options = format_options
        self._kafka = kafka
        roles = {} if controller is None else {"process.roles": "broker"}
        self._properties = {**DEFAULTS, **roles, **(properties or {})}
        self._settings_file = folder / "server.properties"
        self._report = folder / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._news = threading.Condition()
        self._reported: list[str] = []
        self._report_is_over = True

    @property
    def pid(self) -> int:
        return self._running().pid

    def start(self) -> None:
        assert self._process is None, "it is running already"
        self._configure()
        if not (self.log_dir / "meta.properties").exists():
            self._format()
        self._reported.clear()
        self._report_is_over = False
        self._process = subprocess.Popen(
            self._kafka.command("kafka.Kafka", [str(self._settings_file)], *JVM_OPTIONS),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._reader = threading.Thread(target=self._read_report, args=(self._process,), daemon=True)
        self._reader.start()
        try:
            self.wait_for_report(lambda line: STARTED in line)
        except TimeoutError:
            self.kill()
            raise

    def stop(self) -> None:
        """End it as an operator would: it closes its files and leaves its mark of a clean shutdown."""
        process = self._running()
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self._ended()
        if code not in (0, 128 + signal.SIGTERM):
            raise RuntimeError(f"Kafka ended with {code}; its report ends with:\n{self.report()[-3000:]}")

    def kill(self) -> None:
        """End it as a crash would."""
        process = self._running()
        process.kill()
        process.wait()
        self._ended()

    def wait_for_report(self, is_it: Callable[[str], bool]) -> str:
        """The first matching line logged since the last start; waits for it."""
        deadline = time.monotonic() + REPORT_TIMEOUT_S
        seen = 0
        with self._news:
            while True:
                for line in self._reported[seen:]:
                    if is_it(line):
                        return line
                seen = len(self._reported)
                if self._report_is_over or not self._news.wait(deadline - time.monotonic()):
                    raise TimeoutError(f"Kafka did not get there; its log:\n{self.report()[-3000:]}")

    def report(self) -> str:
        """What the broker has logged, over all its starts."""
        return self._report.read_text(errors="replace")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is None:
            return
        if error is None:
            self.stop()
        else:
            self.kill()

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "it is not running"
        return self._process

    def _ended(self) -> None:
        assert self._reader is not None
        self._reader.join()
        self._process = self._reader = None

    def _configure(self) -> None:
        # New ports each time: the old ones are not reserved while a broker is down.
        port, controller_port, *others = _free_ports(2 + len(self._listeners))
        self.bootstrap = f"127.0.0.1:{port}"
        self.addresses = {name: f"localhost:{own}" for name, own in zip(self._listeners, others, strict=True)}
        more = "".join(f",{name}://{address}" for name, address in self.addresses.items())
        protocols = "".join(f",{name}:{name}" for name in self._listeners)
        if self._is_controller:
            more += f",CONTROLLER://127.0.0.1:{controller_port}"
            self.controller = f"{self._properties['node.id']}@127.0.0.1:{controller_port}"
        places = {
            "listeners": f"PLAINTEXT://127.0.0.1:{port}{more}",
            "listener.security.protocol.map": self._properties["listener.security.protocol.map"] + protocols,
            "controller.quorum.voters": self.controller,
            "log.dirs": str(self.log_dir),
        }
        self._settings_file.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{name}={value}\n" for name, value in {**self._properties, **places}.items()]
        self._settings_file.write_text("".join(lines))

    def _format(self) -> None:
        options = ["-t", CLUSTER_ID, "-c", str(self._settings_file), *self._format_options]
        done = run_tool(self._kafka, "kafka.tools.StorageTool", "format", *options)
        if done.exit_code != 0:
            raise RuntimeError(f"Kafka did not format its folder: {done.stdout}{done.stderr}")

    def _read_report(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with process.stdout, self._report.open("ab", buffering=0) as report:
            for line in process.stdout:
                report.write(line)
                with self._news:
                    self._reported.append(line.decode(errors="replace"))
                    self._news.notify_all()
        with self._news:
            self._report_is_over = True
            self._news.notify_all()


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
