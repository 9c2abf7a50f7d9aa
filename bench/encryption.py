"""Encryption at rest: the same broker, machine and client with it and without, in turns."""

from __future__ import annotations

from collections.abc import Iterator

from bench.against_kafka import consume_per_second, create, in_turns, medians, produce_per_second
from bench.report import Row, speed
from bench.sides import Ottla, Side
from ottla.core.keys import first_ring, write_key_file

TOPIC = "t"
RECORD_BYTES = 1024
RECORDS = 130_000
PRODUCES = 5
CONSUMES = 7
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
        produced = in_turns(sides, PRODUCES, lambda side: produce_per_second(side, TOPIC, RECORD_BYTES, RECORDS))
        ours, theirs = (rate / 1000 for rate in medians(produced))
        what = "1 KiB records, 1 partition, encrypted, against plain"
        yield speed(f"produce {what}", ours, theirs, "k/s", at_least=PRODUCE_GOAL)
        all_of_it = PRODUCES * RECORDS
        consumed = in_turns(sides, CONSUMES, lambda side: consume_per_second(side, TOPIC, 1, all_of_it))
        ours, theirs = (rate / 1000 for rate in medians(consumed))
        yield speed(f"consume {what}", ours, theirs, "k/s", at_least=CONSUME_GOAL)
