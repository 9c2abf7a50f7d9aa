"""A standalone cluster of Spark on loopback: a master and two workers."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import ottla

# Executors run elsewhere, so a relative path to the sources would mean nothing to them.
SOURCES = str(Path(ottla.__file__).resolve().parents[1])
ENVIRONMENT = {
    **os.environ,
    "SPARK_LOCAL_IP": "127.0.0.1",
    "PYSPARK_PYTHON": sys.executable,
    "PYTHONPATH": f"{SOURCES}:{os.environ.get('PYTHONPATH', '')}",
}
BARE_ENVIRONMENT = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONPATH"}
"""An environment without Ottla, unless it is shipped."""


@contextmanager
def spark_process(*arguments: str, environment: Mapping[str, str] = ENVIRONMENT) -> Iterator["subprocess.Popen[bytes]"]:
    import pyspark

    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), *arguments]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, start_new_session=True, stdout=quiet, stderr=quiet, env=environment) as process:
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@contextmanager
def standalone_cluster(folder: Path, environment: Mapping[str, str] = ENVIRONMENT) -> Iterator[tuple[str, list[int]]]:
    """A master and two workers on loopback: its address, and the process ids of the workers."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    master = ("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0")
    worker = ("org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", "--cores", "1")
    with ExitStack() as running:
        running.enter_context(spark_process(*master, environment=environment))
        workers = [
            running.enter_context(
                spark_process(
                    *worker, "--memory", "600m", "--work-dir", str(folder / name), address, environment=environment
                )
            )
            for name in ("one", "two")
        ]
        yield address, [each.pid for each in workers]


def executors(workers: list[int]) -> list[int]:
    """The executors of these workers, which are in their process groups."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            group = int(status.read_text().rpartition(")")[2].split()[2])
            command = (status.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if group in workers and b"CoarseGrainedExecutorBackend" in command:
            found.append(int(status.parent.name))
    return found
