"""With `flush = "ack"` REST answers after fsync; streams of any size pass through."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

from ottla.broker.settings import Settings
from ottla.net.config import NetConfig
from ottla.storage.config import LogConfig

from .serving import HttpBroker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NDJSON = "application/x-ndjson"


def test_with_flush_ack_acknowledged_messages_are_synced(tmp_path: Path) -> None:
    settings = Settings(log=LogConfig(flush="ack"), net=NetConfig(port=0))
    with HttpBroker(tmp_path, settings=settings) as served:
        written = served.client.post("/v1/topics/t/messages", json={"messages": [{"value": "x"}] * 3})
        assert written.json()["written"] == 3
        log = served.broker.topics.by_name["t"].partitions[0].log
        assert log.recovery_point == 3
        assert len(served.client.get("/v1/topics/t/messages").json()["messages"]) == 3


def test_a_hundred_thousand_messages_are_streamed_without_buffering(tmp_path: Path) -> None:
    def lines() -> Iterator[bytes]:
        thousand = b'{"value":"%b"}\n' % (b"x" * 1000) * 1000
        for _ in range(100):
            yield thousand

    with HttpBroker(tmp_path) as served:
        served.client.post("/v1/topics/t/messages", json={"messages": [{"value": "x" * 1000}] * 1000})
        before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        written = served.client.post("/v1/topics/t/messages", content=lines(), headers={"content-type": NDJSON})
        assert written.json()["written"] == 100_000
        received = 0
        with served.client.stream("GET", "/v1/topics/t/messages", headers={"accept": NDJSON}) as answer:
            for chunk in answer.iter_bytes():
                received += chunk.count(b"\n")
        assert received == 101_000
        # A hundred megabytes went through, twice.
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 40 * 1024
