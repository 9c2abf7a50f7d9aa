"""A local ZooKeeper for development and tests, from the jars in the pyspark package."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ConfigError
from ottla.core.java import packaged, search

if TYPE_CHECKING:
    from collections.abc import Mapping

HOME_VARIABLE: Final = "ZOOKEEPER_HOME"
OLDEST_JAVA: Final = 8
_MAIN: Final = "org.apache.zookeeper.server.ZooKeeperServerMain"
_START_S: Final = 60.0
_STOP_S: Final = 10.0

# Sessions expire at whole ticks, so failover may take a tick longer than the session timeout. The limits of session
# timeouts are multiples of the tick unless they are set.
_CONFIG: Final = """tickTime=200
minSessionTimeout=2000
maxSessionTimeout=60000
dataDir={folder}
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
maxClientCnxns=0
{more}
"""


def find_jars(environment: Mapping[str, str]) -> Path:
    """The jars folder of an installed ZooKeeper, or of Spark."""
    if home := environment.get(HOME_VARIABLE):
        for folder in (Path(home) / "lib", Path(home)):
            if any(folder.glob("zookeeper-[0-9]*.jar")):
                return folder
        raise ConfigError(f"{HOME_VARIABLE} is {home}, which does not contain ZooKeeper")
    spark = importlib.util.find_spec("pyspark")
    if spark is not None and spark.submodule_search_locations:
        folder = Path(spark.submodule_search_locations[0]) / "jars"
        if any(folder.glob("zookeeper-[0-9]*.jar")):
            return folder
    raise ConfigError(f"ZooKeeper not found: set {HOME_VARIABLE}, or: pip install pyspark")


def find_java(environment: Mapping[str, str]) -> Path:
    searched = search(environment, OLDEST_JAVA)
    if searched.found is not None:
        return searched.found.binary
    if (home := packaged()) is not None:
        return home / "bin" / "java"
    raise ConfigError(f"ZooKeeper needs Java {OLDEST_JAVA} or later: {searched.failure}")


class ZooKeeperServer:
    """A single ZooKeeper server with its data folder."""

    def __init__(self, folder: Path, port: int, more_config: str = "", java_options: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.port = port
        self.address = f"127.0.0.1:{port}"
        self._more_config = more_config
        self._java_options = java_options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ConfigError("ZooKeeper is not running")
        return self._process.pid

    def start(self, environment: Mapping[str, str] = os.environ) -> None:
        """Start the server and wait until it responds; raises ConfigError with the path of its log otherwise."""
        jars, java = find_jars(environment), find_java(environment)
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = self.folder / "zoo.cfg"
        settings.write_text(_CONFIG.format(folder=self.folder, port=self.port, more=self._more_config))
        log = self.folder / "zookeeper.log"
        quick = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.disableJmx=true")
        command = [str(java), *quick, *self._java_options, "-cp", f"{jars}/*", _MAIN, str(settings)]
        with log.open("ab") as said:
            # In a separate session: the owner passes on interrupts from the terminal, in order.
            self._process = subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True)
        self._wait_for_answer(log)

    def _wait_for_answer(self, log: Path) -> None:
        assert self._process is not None  # noqa: S101 - for mypy: it was just started
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise ConfigError(f"ZooKeeper exited at once; see {log}")
            if self._answers():
                return
            time.sleep(0.05)
        self.stop()
        raise ConfigError(f"ZooKeeper does not respond; see {log}")

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"srvr")
                return connection.recv(16).startswith(b"Zookeeper")
        except OSError:
            return False

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """Kill the server, to simulate a crash."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def free_port() -> int:
    """A free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
