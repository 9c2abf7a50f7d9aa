"""`ottla serve` runs the table writer for topics with `ottla.table.enable`: real processes, and kills."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("pyiceberg")

from ottla import Admin, Producer  # noqa: E402 - after the check for pyiceberg
from ottla.client.admin.configs import ConfigResource  # noqa: E402
from ottla.lake.catalogs import LakeSettings, open_catalog  # noqa: E402
from ottla.lake.progress import WriterProgress, read_progress  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
PATIENCE_S = 120.0
TABLE = {
    "ottla.table.enable": "true",
    "ottla.table.values": "json",
    "ottla.table.columns": "id bigint, name string",
    "ottla.table.commit.interval.ms": "200",
}


def until(check: Callable[[], Any], what: str) -> Any:
    """Wait for another process: the result of `check` once it is true."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not (found := check()):
        assert time.monotonic() < deadline_s, f"still waiting: {what}"
        time.sleep(0.1)
    return found


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Served:
    """A broker process, its data folder, and its tables."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ready = folder / "ready.json"
        self._log = folder / "broker.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *arguments: str) -> None:
        self._ready.unlink(missing_ok=True)
        command = [sys.executable, "-m", "ottla", "serve", "--port", "0", "--http-port", "0", "--log-level", "info"]
        command += ["--data-dir", str(self.folder / "data"), "--ready-file", str(self._ready), *arguments]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(command, stderr=log, cwd=self.folder)
        until(self._ready.exists, "the broker")
        self.ready = msgspec.json.decode(self._ready.read_bytes())

    def log(self) -> str:
        return self._log.read_text()

    @property
    def servers(self) -> str:
        return str(self.ready["kafka"])

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(PATIENCE_S)

    def produce(self, first: int, end: int) -> None:
        with Producer(self.servers) as producer:
            for each in range(first, end):
                producer.send("orders", b'{"id":%d,"name":"n"}' % each)

    def writer(self, other_than: int = -1) -> WriterProgress:
        def found() -> WriterProgress | None:
            known = read_progress(self.folder / "data/lake")
            return known if known is not None and known.pid != other_than and known.is_alive() else None

        progress: WriterProgress = until(found, "a table writer")
        return progress

    def ids(self) -> list[int]:
        catalog = open_catalog(LakeSettings(folder=self.folder / "data/lake"))
        if not catalog.table_exists("topics.orders"):
            return []
        return sorted(catalog.load_table("topics.orders").scan().to_arrow()["id"].to_pylist())

    def until_ids(self, count: int) -> None:
        until(lambda: len(self.ids()) >= count, f"{count} rows")
        assert self.ids() == list(range(count))

    def metrics(self) -> str:
        with urllib.request.urlopen(f"http://{self.ready['http']}/metrics") as answer:
            return str(answer.read(), "utf-8")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    one = Served(tmp_path)
    yield one
    if one.process is not None and one.process.poll() is None:
        one.process.kill()
        one.process.wait()


def test_tables_survive_kills_of_the_writer_and_of_the_broker(served: Served) -> None:
    served.start()
    assert "ottla_table_writer_up" not in served.metrics()
    with Admin(served.servers) as admin:
        admin.create_topic("orders", configs=TABLE)
    served.produce(0, 5)
    served.until_ids(5)

    first = served.writer().pid
    os.kill(first, signal.SIGKILL)
    served.produce(5, 10)
    served.until_ids(10)
    second = served.writer(other_than=first).pid
    assert "table writer exited (by SIGKILL), restarting it in 1 s" in served.log()
    until(lambda: "ottla_table_writer_restarts_total 1" in served.metrics(), "metrics")
    until(lambda: 'ottla_table_rows{topic="orders"}' in served.metrics(), "metrics of the table")

    served.produce(10, 15)
    served.signal(signal.SIGKILL)
    until(lambda: not is_alive(second), "the writer of a killed broker to end")
    served.start()
    served.until_ids(15)

    third = served.writer(other_than=second).pid
    served.signal(signal.SIGTERM)
    assert not is_alive(third)


def test_a_table_can_be_enabled_later_and_disabled(served: Served) -> None:
    served.start()
    with Admin(served.servers) as admin:
        admin.create_topic("orders")
        served.produce(0, 3)
        admin.alter_configs(ConfigResource.topic("orders"), TABLE)
        served.until_ids(3)
        writer = served.writer().pid
        admin.alter_configs(ConfigResource.topic("orders"), {"ottla.table.enable": "false"})
    until(lambda: not is_alive(writer), "the writer to end")
