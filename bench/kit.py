"""The testing kit against librdkafka's mock cluster: how long a test waits for its broker, and for its first record.

Both are asked by the same client. The mock cluster is part of librdkafka, so that it needs no import.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, Producer

from bench.report import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    Side = Callable[[], AbstractContextManager[str]]

_COLD_RUNS = 7
_WARM_RUNS = 7
_STARTS = 200
_COLD_GOAL_MS = 150
_WARM_GOAL_MS = 10


@contextmanager
def kit() -> Iterator[str]:
    from ottla.testing import broker

    with broker() as one:
        yield one.bootstrap_servers


@contextmanager
def mock_cluster() -> Iterator[str]:
    holder = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    [broker] = holder.list_topics(timeout=10).brokers.values()
    yield f"{broker.host}:{broker.port}"


def first_record_ms(side: Side) -> float:
    """From nothing until a record was acknowledged, and consumed by a member of a group."""
    began = perf_counter()
    with side() as servers:
        producer = Producer({"bootstrap.servers": servers, "linger.ms": 0, "log_level": 0})
        producer.produce("t", b"x")
        assert producer.flush(10) == 0
        settings = {"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest", "log_level": 0}
        consumer = Consumer(settings)
        consumer.subscribe(["t"])
        assert consumer.poll(20) is not None
        took = perf_counter() - began
        consumer.close()
    return took * 1000


def start_ms(side: Side) -> float:
    began = perf_counter()
    with side():
        return (perf_counter() - began) * 1000


def cold_ms(side: str, measure: str) -> float:
    code = f"from bench import kit; print(kit.{measure}(kit.{side}))"
    command = [sys.executable, "-c", code]
    return median(
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(_COLD_RUNS)
    )


def rows() -> list[Row]:
    return [
        _row("cold: until the broker is there", cold_ms("kit", "start_ms"), cold_ms("mock_cluster", "start_ms")),
        _row(
            "cold: until a record was acknowledged and consumed",
            cold_ms("kit", "first_record_ms"),
            cold_ms("mock_cluster", "first_record_ms"),
            _COLD_GOAL_MS,
        ),
        _row(
            "warm: until the broker is there",
            median(start_ms(kit) for _ in range(_STARTS)),
            median(start_ms(mock_cluster) for _ in range(_WARM_RUNS)),
            _WARM_GOAL_MS,
        ),
        _row(
            "warm: until a record was acknowledged and consumed",
            median(first_record_ms(kit) for _ in range(_WARM_RUNS)),
            median(first_record_ms(mock_cluster) for _ in range(_WARM_RUNS)),
        ),
    ]


def _row(what: str, ours_ms: float, theirs_ms: float, goal_ms: float | None = None) -> Row:
    return Row(
        what=what,
        ours=f"{ours_ms:.1f} ms",
        theirs=f"mock cluster: {theirs_ms:.1f} ms",
        ratio=ours_ms / theirs_ms,
        goal="" if goal_ms is None else f"<= {goal_ms} ms",
        is_reached=None if goal_ms is None else ours_ms <= goal_ms,
    )
