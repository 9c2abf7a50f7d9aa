"""Encryption at rest: the same broker, machine and client with it and without, in turns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import median

from bench.librdkafka import consume, create, produce
from bench.report import Row, speed
from bench.rounds import in_turns, rate
from bench.sides import Ottla, Side
from ottla.core.keys import first_ring, write_key_file

TOPIC = "t"
RECORD_BYTES = 1024
PRODUCE_GOAL = 0.75
CONSUME_GOAL = 0.65


class EncryptedOttla(Ottla):
    name = "encrypted-ottla"

    def prepare(self) -> None:
        super().prepare()
        write_key_file(self.folder / "keys", first_ring(), is_new=True)

    def command(self) -> list[str]:
        return [*super().command(), "--set", f"encryption.key_file={self.folder / 'keys'}"]


def rows() -> Iterator[Row]:
    with EncryptedOttla() as encrypted, Ottla() as plain:
        sides: list[Side] = [encrypted, plain]
        for side in sides:
            create(side, TOPIC, 1)
        what = "1 KiB records, 1 partition, encrypted, against plain"
        for name, work, goal in (
            ("produce", lambda side: partial(produce, side, TOPIC, RECORD_BYTES), PRODUCE_GOAL),
            ("consume", lambda side: partial(consume, side, TOPIC, 1), CONSUME_GOAL),
        ):
            ours, theirs = in_turns(sides, lambda side: rate(side.pid, work(side)).per_second / 1000)  # noqa: B023
            yield speed(f"{name} {what}", median(ours), median(theirs), "k/s", at_least=goal)
