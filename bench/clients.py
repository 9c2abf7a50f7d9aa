"""Our client beside confluent-kafka, aiokafka and kafka-python: same broker, same data, one after the other."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from bench.client_drivers import Figures
from bench.librdkafka import create
from bench.report import Row
from bench.sides import Ottla, Side

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS = 3
"""Rounds per client; the best counts, because disturbances only slow a run down."""
SIZES = (100, 1024)
PARTITIONS = (1, 6)
RECORDS = {100: 1_000_000, 1024: 300_000}
SLOWER = {"aiokafka": 10, "kafka_python": 10}
"""Their work is divided by this factor."""
AWAITED = 2_000
OTHERS = ("confluent", "aiokafka", "kafka_python")
GOALS = {"confluent": 1.0, "aiokafka": 5.0, "kafka_python": 10.0}
ARROW_GOAL = 5.0


def drive(side: Side, client: str, work: str, shape: tuple[str, int, int, int]) -> Figures:
    """Run one client in a separate process."""
    command = [sys.executable, "-m", "bench.client_drivers", client, work, side.bootstrap, *map(str, shape)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise RuntimeError(f"{client} {work}: {done.stderr[-2000:]}")
    return Figures(**json.loads(done.stdout))


def best(runs: list[Figures]) -> Figures:
    return Figures(
        per_second=max(run.per_second for run in runs),
        cpu_s_per_million=min(run.cpu_s_per_million for run in runs),
        p50_us=min(run.p50_us for run in runs),
        p99_us=min(run.p99_us for run in runs),
    )


def interleaved(
    side: Side, works: list[tuple[str, str]], topic: str, partitions: int, size: int
) -> dict[tuple[str, str], Figures]:
    """Run every client in turn for several rounds, so that a noisy minute affects all of them."""
    runs: dict[tuple[str, str], list[Figures]] = {work: [] for work in works}
    for number in range(ROUNDS):
        for client, work in works:
            count = RECORDS[size] // SLOWER.get(client, 1)
            target = topic
            if "produce" in work:
                target = f"{topic}-{client}-{work}-{number}".replace("_", "-")
                create(side, target, partitions)
            runs[client, work].append(drive(side, client, work, (target, partitions, size, count)))
    return {work: best(figures) for work, figures in runs.items()}


def compared(what: str, ours: Figures, theirs: Figures, goal: float) -> Row:
    ratio = ours.per_second / theirs.per_second
    return Row(
        what=what,
        ours=f"{ours.per_second:,.0f}/s, {ours.cpu_s_per_million:.2f} CPU s/M",
        theirs=f"{theirs.per_second:,.0f}/s, {theirs.cpu_s_per_million:.2f} CPU s/M",
        ratio=ratio,
        goal=f">= {goal:g}x",
        is_reached=ratio >= goal,
    )


def throughput(side: Side, partitions: int, size: int) -> Iterator[Row]:
    shape = f"{size} B, {partitions} partition{'s' if partitions > 1 else ''}"
    topic = f"clients-{size}-{partitions}"
    create(side, topic, partitions)
    drive(side, "confluent", "produce", (topic, partitions, size, RECORDS[size]))
    ours = [("ottla", "produce"), ("ottla", "blocking_produce")]
    found = interleaved(side, ours + [(other, "produce") for other in OTHERS], topic, partitions, size)
    for client, work in ours:
        for other in OTHERS:
            name = f"{work.replace('_', ' ')} {shape} against {other}"
            yield compared(name, found[client, work], found[other, "produce"], GOALS[other])
    ours = [("ottla", "consume"), ("ottla", "iterate"), ("ottla", "blocking_consume"), ("ottla", "consume_arrow")]
    found = interleaved(side, ours + [(other, "consume") for other in OTHERS], topic, partitions, size)
    for client, work in ours:
        for other in OTHERS:
            goal = ARROW_GOAL if work == "consume_arrow" and other == "confluent" else GOALS[other]
            name = f"{work.replace('_', ' ')} {shape} against {other}"
            yield compared(name, found[client, work], found[other, "consume"], goal)


def latency(side: Side) -> Iterator[Row]:
    create(side, "clients-latency", 1)
    runs: dict[str, list[Figures]] = {client: [] for client in ("ottla", *OTHERS)}
    for _ in range(ROUNDS):
        for client, figures in runs.items():
            figures.append(drive(side, client, "latency", ("clients-latency", 1, 100, AWAITED)))
    found = {client: best(figures) for client, figures in runs.items()}
    ours = found["ottla"]
    for other in OTHERS:
        for name, our_us, their_us in (
            ("p50", ours.p50_us, found[other].p50_us),
            ("p99", ours.p99_us, found[other].p99_us),
        ):
            has_goal = other == "aiokafka" and name == "p50"
            yield Row(
                what=f"awaited send, {name}, against {other}",
                ours=f"{our_us:,.0f} µs",
                theirs=f"{their_us:,.0f} µs",
                ratio=our_us / their_us,
                goal="<= 1.0x" if has_goal else "",
                is_reached=our_us <= their_us if has_goal else None,
            )


def rows() -> Iterator[Row]:
    with Ottla() as side:
        for size in SIZES:
            for partitions in PARTITIONS:
                yield from throughput(side, partitions, size)
        yield from latency(side)
