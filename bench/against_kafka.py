"""Ottla beside Apache Kafka: same machine, same disk, same client, defaults on both sides.

Both are warmed up until their speed no longer changes. Then one is measured while the other idles, in rounds that
alternate, each case for at least five seconds. BENCH_CASES=1024x6,latencies measures only these cases, as long as
in a full run; BENCH_SHORT=1 runs all of them for a second, to see that they work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path

from bench.disk import check_space, written_mb_per_second
from bench.librdkafka import consume, create, delete, produce, produce_one_us, produce_to_consume_us
from bench.report import Row, percentile
from bench.requests import IN_FLIGHT, bare_process, connect, exchange, produce_frame
from bench.rounds import CASE_S, CASES, Rate, Spread, in_turns, rate, ratio_of_rounds, warm_up
from bench.sides import Kafka, Kfake, Ottla, Side

SIZES = (100, 1024)
PARTITIONS = (1, 6)
SHAPES = {f"{size}x{partitions}": (size, partitions) for size in SIZES for partitions in PARTITIONS}
"""Size of the records and number of partitions."""
ALL_CASES = ("starts", *SHAPES, "latencies", "requests")
SPACE_GB = 2 * 2 * CASE_S
"""A topic of each side, written at up to 1 GB/s, and as much again while files are removed."""
DISK_BOUND = 0.7
"""A case that writes at more than this part of the disk's own speed is bound by the disk."""

Latencies = Callable[[Side, str, float], list[float]]


def compared(what: str, ours: Sequence[float], theirs: Sequence[float], goal: str = "") -> Row:
    """Medians with their range; the ratio is the median of the rounds' ratios."""
    ratio = ratio_of_rounds(ours, theirs)
    sign, _, bound = goal.partition(" ")
    is_reached = None
    if goal:
        limit = float(bound.rstrip("x"))
        is_reached = ratio.median >= limit if sign == ">=" else ratio.median <= limit
    return Row(
        what=what,
        ours=str(Spread.of(ours)),
        theirs=str(Spread.of(theirs)),
        ratio=ratio.median,
        spread=f"{ratio.low:.2f} to {ratio.high:.2f}",
        goal=goal,
        is_reached=is_reached,
    )


def starts() -> Iterator[Row]:
    def first_answer_ms(kind: type[Ottla | Kafka]) -> float:
        with kind() as side:
            return side.first_answer_ms

    ours, theirs = in_turns([Ottla, Kafka], first_answer_ms)
    yield compared("exec to first answer, ms", ours, theirs, "<= 0.05x")


def resident(what: str, sides: Sequence[Side]) -> Row:
    ours, theirs = ([side.resident_mib] for side in sides)
    return compared(f"resident {what}, MiB", ours, theirs, "<= 0.15x")


def warmed(sides: Sequence[Side]) -> Iterator[Row]:
    """Produce and consume until the speed is flat: Java compiles what it has run often."""
    for side in sides:
        create(side, "warm-up", 1)

        def round_trip(seconds: float, side: Side = side) -> float:
            produced = rate(side.pid, partial(produce, side, "warm-up", 100), seconds)
            consumed = rate(side.pid, partial(consume, side, "warm-up", 1), seconds)
            produce_one_us(side, "warm-up", time.perf_counter() + seconds)
            return produced.per_second + consumed.per_second

        steps = warm_up(round_trip)
        yield Row(what=f"warm-up of {side.name}: steps of 6 s until three differ by less than 5 %", ours=str(steps))


def rates(what: str, sides: Sequence[Side], measure: Callable[[Side], Rate], goal: str) -> Iterator[Row]:
    ours, theirs = in_turns(sides, measure)
    yield compared(f"{what}, per second", [one.per_second for one in ours], [one.per_second for one in theirs], goal)
    cpu_goal = "<= 0.8x" if goal else ""
    yield compared(f"{what}, broker CPU µs", [one.cpu_us for one in ours], [one.cpu_us for one in theirs], cpu_goal)
    memory = [[one.resident_mib for one in side] for side in (ours, theirs)]
    yield compared(f"{what}, broker resident MiB", *memory)


def throughput(sides: Sequence[Side], disk_mb: float) -> Iterator[Row]:
    for name, (size, partitions) in SHAPES.items():
        if is_chosen(name):
            yield from shape(sides, size, partitions, disk_mb)


def shape(sides: Sequence[Side], size: int, partitions: int, disk_mb: float) -> Iterator[Row]:
    numbers = count()
    topics: dict[str, str] = {}

    def produced(side: Side) -> Rate:
        # A new topic each time: 25 seconds of 1 KiB records of two brokers would be 30 GB.
        if side.name in topics:
            delete(side, topics.pop(side.name))
        topics[side.name] = topic = f"t-{size}-{partitions}-{next(numbers)}"
        create(side, topic, partitions)
        return rate(side.pid, partial(produce, side, topic, size))

    what = f"{size} B records, {partitions} partition{'s' if partitions > 1 else ''}"
    for row in rates(f"produce {what}", sides, produced, ">= 1.0x"):
        yield marked_if_disk_bound(row, size, disk_mb)
    yield from rates(
        f"consume {what}",
        sides,
        lambda side: rate(side.pid, partial(consume, side, topics[side.name], partitions)),
        ">= 1.0x",
    )
    for side in sides:
        delete(side, topics[side.name])


def marked_if_disk_bound(row: Row, size: int, disk_mb: float) -> Row:
    fastest = max(float(text.split()[0].replace(",", "")) for text in (row.ours, row.theirs))
    if row.what.endswith("per second") and fastest * size / 1e6 > DISK_BOUND * disk_mb:
        return row.without_goal(" (disk bound)")
    return row


def latencies(sides: Sequence[Side], with_kfake: Sequence[Side]) -> Iterator[Row]:
    for side in (*sides, *with_kfake):
        create(side, "latency", 1)
    cases: list[tuple[str, Latencies, tuple[str, str]]] = [
        ("one produce", produce_one_us, ("<= 0.65x", "<= 0.6x")),
        ("produce to consume", produce_to_consume_us, ("<= 0.7x", "")),
    ]
    for name, load, goals in cases:
        columns = in_turns(
            (*sides, *with_kfake),
            lambda side: sorted(load(side, "latency", time.perf_counter() + CASE_S)),  # noqa: B023 - called at once
        )
        for share, goal in zip((0.5, 0.99), goals, strict=True):
            ours, theirs, *others = [[percentile(times, share) for times in column] for column in columns]
            yield compared(f"{name}, p{share * 100:g} µs", ours, theirs, goal)
            for other in others:
                yield compared(f"{name}, p{share * 100:g} µs, against kfake", ours, other)


def raw_requests(sides: Sequence[Side], with_kfake: Sequence[Side]) -> Iterator[Row]:
    """Produce requests of 1 KiB from a bare socket, beside a server that answers without looking."""
    frame = produce_frame()
    for side in (*sides, *with_kfake):
        create(side, "bench", 1)
    answer = exchange(connect(sides[0].port), frame)
    with bare_process("do_nothing", answer.hex()) as floor:
        named = [(side.name, side.port, side.pid) for side in (*sides, *with_kfake)]
        named.append(("a server that does nothing", *floor))
        for what, work, goal in (
            ("one in flight", one_in_flight, ""),
            (f"{IN_FLIGHT} in flight", many_in_flight, ">= 0.6x"),
        ):
            ours, *columns = in_turns(
                named,
                lambda one: rate(one[2], partial(work, one[1], frame)),  # noqa: B023 - called at once
            )
            for (name, _, _), theirs in zip(named[1:], columns, strict=True):
                is_floor = name.startswith("a server")
                yield compared(
                    f"raw produce, {what}, per second, against {name}",
                    [one.per_second for one in ours],
                    [one.per_second for one in theirs],
                    goal if is_floor else "",
                )
                yield compared(
                    f"raw produce, {what}, broker CPU µs, against {name}",
                    [one.cpu_us for one in ours],
                    [one.cpu_us for one in theirs],
                )


def one_in_flight(port: int, frame: bytes, deadline: float) -> int:
    connection = connect(port)
    count = 0
    while time.perf_counter() < deadline:
        exchange(connection, frame)
        count += 1
    return count


def many_in_flight(port: int, frame: bytes, deadline: float) -> int:
    """A window goes out as soon as one has come back."""
    connection = connect(port)
    answer_bytes = len(exchange(connection, frame))
    window = frame * IN_FLIGHT
    count = 0
    while time.perf_counter() < deadline:
        connection.sendall(window)
        left = answer_bytes * IN_FLIGHT
        while left:
            left -= len(connection.recv(left))
        count += IN_FLIGHT
    return count


def is_chosen(case: str) -> bool:
    return not CASES or case in CASES


def rows() -> Iterator[Row]:
    unknown = [case for case in CASES if case not in ALL_CASES]
    if unknown:
        raise ValueError(f"BENCH_CASES: there is no case {unknown[0]!r}; there are {', '.join(ALL_CASES)}")
    if is_chosen("starts"):
        yield from starts()
    with ExitStack() as stack:
        sides: list[Side] = [stack.enter_context(Ottla()), stack.enter_context(Kafka())]
        check_space(sides[0].folder, SPACE_GB)
        disk_mb = written_mb_per_second(Path(sides[0].folder))
        yield Row(what="the disk alone, MB/s", ours=f"{disk_mb:,.0f}")
        yield resident("idle", sides)
        yield from warmed(sides)
        yield from throughput(sides, disk_mb)
        yield resident("after all of this", sides)
        with_kfake: list[Side] = [stack.enter_context(Kfake())] if Kfake.can_be_built() else []
        if is_chosen("latencies"):
            yield from latencies(sides, with_kfake)
        if is_chosen("requests"):
            yield from raw_requests(sides, with_kfake)
