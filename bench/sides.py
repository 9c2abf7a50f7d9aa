"""Ottla and Apache Kafka as processes to be measured from outside, each with its defaults."""

from __future__ import annotations

import compileall
import importlib.util
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from interop.foreign_clients import go_program
from interop.kafka_artifacts import kafka_artifacts
from interop.kafka_broker import CLUSTER_ID
from interop.kafka_tools import run_tool

from bench.rounds import resident_mib

START_TIMEOUT_S = 90
# What Kafka's own start script gives the JVM.
KAFKA_JVM = ("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Djava.awt.headless=true")
DEPENDENCIES = ("click", "cramjam", "fastcrc", "h11", "msgspec", "starlette", "typing_extensions", "uvicorn", "uvloop")
API_VERSIONS_V0 = struct.pack(">ihhih", 10, 18, 0, 7, -1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def compile_package(name: str) -> None:
    """Write its bytecode, if it is installed."""
    found = importlib.util.find_spec(name)
    for folder in (found and found.submodule_search_locations) or ():
        compileall.compile_dir(folder, quiet=1)
    if found is not None and found.origin is not None:
        compileall.compile_file(found.origin, quiet=1)


class Side(ABC):
    name = ""

    def __init__(self) -> None:
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix=f"bench-{self.name}-"))
        self.first_answer_ms = 0.0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @abstractmethod
    def command(self) -> list[str]: ...

    def prepare(self) -> None:
        """What has to be done once before the first start, and is not measured."""

    def __enter__(self) -> Self:
        self.prepare()
        start = time.perf_counter()
        with self._last_words.open("wb") as said:
            self._process = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, stderr=said)
        try:
            self._await_answer(self._process, start + START_TIMEOUT_S)
        except BaseException:
            self.__exit__()
            raise
        self.first_answer_ms = (time.perf_counter() - start) * 1000
        return self

    @property
    def _last_words(self) -> Path:
        return self.folder / "stderr"

    def _await_answer(self, process: subprocess.Popen[bytes], deadline: float) -> None:
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                    connection.sendall(API_VERSIONS_V0)
                    if connection.recv(4):
                        return
            except OSError:
                pass
            if process.poll() is not None:
                raise RuntimeError(f"{self.name} ended before it answered: {self._last_words.read_text().strip()}")
            if time.perf_counter() > deadline:
                raise TimeoutError(f"{self.name} did not answer within {START_TIMEOUT_S} s")
            time.sleep(0.001)

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def resident_mib(self) -> float:
        return resident_mib(self.pid)


class Ottla(Side):
    name = "ottla"

    def __init__(self, python: str = sys.executable) -> None:
        super().__init__()
        self._python = python

    def prepare(self) -> None:
        # As pip does when it installs packages, unlike uv.
        for name in ("ottla", *DEPENDENCIES):
            compile_package(name)

    def command(self) -> list[str]:
        options = ["--port", str(self.port), "--http-port", str(free_port()), "--data-dir", str(self.folder / "data")]
        return [self._python, "-m", "ottla", "serve", *options]


class Kfake(Side):
    """The in-memory cluster of the Go client franz-go."""

    name = "kfake"

    @staticmethod
    def can_be_built() -> bool:
        return shutil.which("go") is not None

    def command(self) -> list[str]:
        return [str(go_program("kfake")), str(self.port)]


class Kafka(Side):
    name = "kafka"

    def prepare(self) -> None:
        self._settings = self.folder / "server.properties"
        controller = free_port()
        self._settings.write_text(
            "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
            f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}\n"
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
            f"log.dirs={self.folder / 'data'}\noffsets.topic.replication.factor=1\n"
            "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
            # By default files of deleted topics stay for a minute: the disk would be full after some cases.
            "log.segment.delete.delay.ms=0\n"
        )
        arguments = ("format", "-t", CLUSTER_ID, "-c", str(self._settings))
        done = run_tool(kafka_artifacts(), "kafka.tools.StorageTool", *arguments)
        if done.exit_code != 0:
            raise RuntimeError(f"Kafka did not format its folder: {done.stdout}{done.stderr}")

    def command(self) -> list[str]:
        kafka = kafka_artifacts()
        return [str(kafka.java), *KAFKA_JVM, "-cp", f"{kafka.jars}/*", "kafka.Kafka", str(self._settings)]
