"""This Ottla beside another release or commit of it, in alternating rounds: no change may make it slower.

OTHER_PYTHON names the Python of an environment in which the other one is installed, compiled.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain

from confluent_kafka.admin import AdminClient, NewTopic

from bench.against_kafka import compared, latencies, throughput
from bench.cluster import NODES, OttlaNodes, create_topic, records_per_s, waits_us
from bench.disk import written_mb_per_second
from bench.failover import QUIET, confluent_writer, until
from bench.report import Row, percentile
from bench.rounds import in_turns
from bench.sides import Ottla

OTHER = os.environ.get("OTHER_PYTHON", "")
NOT_SLOWER = ">= 0.95x"
NOT_LATER = "<= 1.05x"
CLUSTER_ROUNDS = 3


def starts() -> Iterator[Row]:
    def measured(python: str) -> tuple[float, float]:
        with Ottla(python) as side:
            return side.first_answer_ms, side.resident_mib

    ours, theirs = in_turns([sys.executable, OTHER], measured)
    for number, what in enumerate(("exec to first answer, ms", "resident idle, MiB")):
        yield compared(what, [one[number] for one in ours], [one[number] for one in theirs], NOT_LATER)


def one_broker() -> Iterator[Row]:
    with ExitStack() as stack:
        sides = [stack.enter_context(Ottla(python)) for python in (sys.executable, OTHER)]
        disk_mb = written_mb_per_second(sides[0].folder)
        for row in chain(throughput(sides, disk_mb), latencies(sides, [])):
            yield row.without_goal("")


def clusters() -> Iterator[Row]:
    """One cluster at a time: six nodes would measure how they share the machine."""

    def measured(python: str) -> tuple[float, float, float]:
        with OttlaNodes(python) as nodes:
            create_topic(nodes)
            records_per_s(nodes)  # to warm up
            return records_per_s(nodes), percentile(waits_us(nodes), 0.5), failover_s(nodes)

    ours, theirs = in_turns([sys.executable, OTHER], measured, CLUSTER_ROUNDS)
    for number, (what, goal) in enumerate(
        (
            ("three nodes, acks=all, 1000 B, per second", NOT_SLOWER),
            ("three nodes, acks=all, one record, p50 µs", NOT_LATER),
            ("kill -9 of a leader to the next acknowledged record, s", NOT_LATER),
        )
    ):
        yield compared(what, [one[number] for one in ours], [one[number] for one in theirs], goal)


def failover_s(nodes: OttlaNodes) -> float:
    """With the default session timeout of 6 s."""
    admin = AdminClient({**QUIET, "bootstrap.servers": nodes.bootstrap})
    admin.create_topics([NewTopic("failover", 1, NODES, config={"min.insync.replicas": "2"})])["failover"].result(60)
    leader = admin.list_topics("failover", timeout=30).topics["failover"].partitions[0].leader
    writer = confluent_writer(nodes.bootstrap, "failover")
    try:
        until(lambda: writer.acknowledged_s)
        killed_s = time.monotonic()
        nodes.kill(leader)
        until(lambda: writer.acknowledged_s > killed_s)
        return time.monotonic() - killed_s
    finally:
        writer.end()


def rows() -> Iterator[Row]:
    if not OTHER:
        yield Row(what="not measured: OTHER_PYTHON names no other Ottla", ours="")
        return
    yield from starts()
    yield from one_broker()
    yield from clusters()
