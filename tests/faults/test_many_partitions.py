"""Describing thousands of partitions with few file descriptors."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.request import urlopen

from tests.broker.making import batch, create_topic
from tests.broker.raw_client import RawClient

from ottla.core.errors import ErrorCode
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTITIONS = 7_000
WRITTEN = 1_500
"""This many have a folder and records, more than there are descriptors."""
AT_ONCE = 100
FEW = 1_024
PATIENCE_S = 60


class Serving(NamedTuple):
    pid: int
    kafka: str
    http: str

    def get(self, path: str) -> bytes:
        with urlopen(f"http://{self.http}{path}", timeout=PATIENCE_S) as answer:
            content: bytes = answer.read()
            return content

    @property
    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))


@contextmanager
def serving(folder: Path, limit: int | None = None, ended_by: int = signal.SIGTERM) -> Iterator[Serving]:
    ready = folder.with_suffix(".ready")
    ready.unlink(missing_ok=True)
    command = [sys.executable, "-m", "ottla", "serve", "--data-dir", str(folder), "--port", "0", "--http-port", "0"]
    limiting = [] if limit is None else ["sh", "-c", f'ulimit -n {limit} && exec "$@"', "sh"]
    with folder.with_suffix(".log").open("wb") as errors:
        process = subprocess.Popen(
            [*limiting, *command, f"--ready-file={ready}"], stdout=subprocess.DEVNULL, stderr=errors
        )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not ready.exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        addresses = json.loads(ready.read_bytes())
        yield Serving(process.pid, addresses["kafka"], addresses["http"])
        process.send_signal(ended_by)
        assert process.wait(PATIENCE_S) in (0, -signal.SIGKILL)
    finally:
        process.kill()
        process.wait()


def produce(server: Serving, partitions: range) -> None:
    with RawClient(server.kafka) as client:
        data = tuple(PartitionProduceData(index=index, records=batch(b"x")) for index in partitions)
        topic = TopicProduceData(name="many", partition_data=data)
        [answer] = client.ask(ProduceRequest(acks=1, timeout_ms=10_000, topic_data=(topic,)), 12).responses
    assert {each.error_code for each in answer.partition_responses} == {ErrorCode.NONE}


def test_all_partitions_are_described_without_opening_their_files(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        with RawClient(server.kafka) as client:
            create_topic(client, "many", PARTITIONS)
        for first in range(0, WRITTEN, AT_ONCE):
            produce(server, range(first, first + AT_ONCE))
    with serving(tmp_path / "data", FEW, ended_by=signal.SIGKILL) as server:
        before = server.descriptors

        topics = json.loads(server.get("/v1/topics"))
        one = json.loads(server.get("/v1/topics/many"))
        metrics = server.get("/metrics").decode()
        totals = json.loads(server.get("/v1/totals"))

        assert server.descriptors < before + 50
        [listed] = [each for each in topics["topics"] if each["name"] == "many"]
        assert int(listed["messages"]) == WRITTEN
        assert [int(each["end_offset"]) for each in one["partitions"]] == [1] * WRITTEN + [0] * (PARTITIONS - WRITTEN)
        assert metrics.count("\nottla_log_end_offset{") >= PARTITIONS
        assert f'ottla_log_end_offset{{topic="many",partition="{WRITTEN - 1}"}} 1\n' in metrics
        assert int(totals["messages"]) >= WRITTEN
        produce(server, range(WRITTEN - 1, WRITTEN + 1))
        again = json.loads(server.get("/v1/topics/many"))
        assert [int(each["end_offset"]) for each in again["partitions"][WRITTEN - 2 : WRITTEN + 2]] == [1, 2, 1, 0]
    assert len(list((tmp_path / "data").glob("many-*"))) == WRITTEN + 1

    # After a crash all logs are opened, to be recovered.
    with serving(tmp_path / "data", FEW) as server:
        assert server.descriptors < FEW - 100
        [listed] = json.loads(server.get("/v1/topics?prefix=many"))["topics"]
        assert int(listed["messages"]) == WRITTEN + 2
        produce(server, range(WRITTEN - 100, WRITTEN))
        produce(server, range(AT_ONCE))
    assert f"{PARTITIONS} partitions, but with a limit of {FEW} file descriptors only {FEW // 2} of their files" in (
        (tmp_path / "data.log").read_text()
    )
