"""The expected report of every program in `clients/`; `clients/README.md` describes the scenario."""

import json
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from interop.ottla_server import OttlaServer
from ottla.records.compression import Compression

PROGRAM_TIMEOUT_S = 60
RECORDS = 100
CODECS = tuple(Compression)  # of the partition with that number
Report = dict[str, Any]


def play(server: OttlaServer, command: Sequence[str], topic: str) -> None:
    """Run the program, and compare its report and the files with the expected ones."""
    # A minute ago: not so old that retention takes the records away, nor in the future.
    base_ms = time.time_ns() // 1_000_000 - 60_000
    done = subprocess.run(
        [*command, server.bootstrap, topic, str(base_ms)],
        capture_output=True,
        text=True,
        timeout=PROGRAM_TIMEOUT_S,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-1000:]
    report: Report = json.loads(done.stdout)
    for field, value in expected(topic, base_ms).items():
        assert report.pop(field) == value, field
    assert report == {}
    for partition, codec in enumerate(CODECS):
        batches = server.batches(topic, partition)
        assert {batch.compression for batch in batches} == {codec}
        assert sum(batch.record_count for batch in batches) == RECORDS


def expected(topic: str, base_ms: int) -> Report:
    partitions = [str(partition) for partition in range(len(CODECS))]
    return {
        "created": [2, "86400000"],
        "altered": [5, "3600000"],
        "produced": {partition: [0, RECORDS - 1] for partition in partitions},
        "assigned": [2, 3],
        "group": ["Stable", 2],
        "consumed": {
            partition: [f"{n} key-{n} {_value(partition, n)} {n} {base_ms + n}" for n in range(RECORDS)]
            for partition in partitions
        },
        "after_leave": 5,
        "committed": dict.fromkeys(partitions, RECORDS),
        "earliest": dict.fromkeys(partitions, 0),
        "latest": dict.fromkeys(partitions, RECORDS),
        "at": dict.fromkeys(partitions, 50),
        "low_watermark": 30,
        "topics": [topic],
        "groups": [],
    }


def _value(partition: str, number: int) -> str:
    return "~" if number % 10 == 9 else f"{partition}-{number}"
