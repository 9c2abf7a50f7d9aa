"""Compares the final state with the acknowledgements. Pure: values in, violations out."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bench.soak.ledger import Ack, At, read_value


class Stored(NamedTuple):
    offset: int
    value: bytes


@dataclass(slots=True)
class Verdict:
    """What became of the records of one partition."""

    violations: list[str] = field(default_factory=list)
    acknowledged: int = 0
    expired: int = 0
    duplicates: int = 0
    """Repeated by producers without idempotence, which may happen."""


def check_partition(
    at: At,
    acks: Iterable[Ack],
    stored: Sequence[Stored],
    idempotent: Collection[str],
    *,
    may_expire: bool,
) -> Verdict:
    verdict = Verdict()
    by_offset = {record.offset: record for record in stored}
    start = stored[0].offset if stored else 0
    for ack in acks:
        verdict.acknowledged += 1
        found = by_offset.get(ack.offset)
        if found is None and may_expire and ack.offset < start:
            verdict.expired += 1
        elif found is None:
            verdict.violations.append(f"{at}: acknowledged at {ack.offset}, not there: {ack.producer} {ack.number}")
        elif read_value(found.value) != (ack.producer, ack.number) or zlib.crc32(found.value) != ack.checksum:
            verdict.violations.append(f"{at}: at {ack.offset} is not {ack.producer} {ack.number}")
    _check_order(at, stored, idempotent, verdict)
    return verdict


def _check_order(at: At, stored: Sequence[Stored], idempotent: Collection[str], verdict: Verdict) -> None:
    """A producer's records are where it sent them: in order, and each once if it is idempotent."""
    newest: dict[str, int] = {}
    seen: set[tuple[str, int]] = set()
    for record in stored:
        producer, number = read_value(record.value)
        if (producer, number) in seen:
            verdict.duplicates += producer not in idempotent
            if producer in idempotent:
                verdict.violations.append(f"{at}: {producer} {number} is there again at {record.offset}")
            continue
        seen.add((producer, number))
        if number < newest.get(producer, -1):
            verdict.violations.append(f"{at}: {producer} {number} at {record.offset} comes after {newest[producer]}")
        newest[producer] = max(number, newest.get(producer, -1))


def check_topics(
    promised: Mapping[str, bool | None], partitions: Mapping[str, int], found: Mapping[str, int]
) -> list[str]:
    violations = [f"topic {name} is gone" for name, exists in promised.items() if exists and name not in found]
    violations += [f"topic {name} is back" for name, exists in promised.items() if exists is False and name in found]
    violations += [
        f"topic {name} has {found[name]} partitions, not {least}"
        for name, least in partitions.items()
        if name in found and found[name] < least
    ]
    return violations


def check_commits(promised: Mapping[At, int], seen_before: Mapping[At, int], seen: Mapping[At, int]) -> list[str]:
    """What was acknowledged, or seen, as committed is committed still, or something later is."""
    return [
        f"{at}: the commit went back from {least} to {offset}"
        for at, offset in seen.items()
        if offset < (least := max(promised.get(at, 0), seen_before.get(at, 0)))
    ]


class Sample(NamedTuple):
    seconds: float
    resident_bytes: int


WARM_UP_SHARE = 0.25
SHORTEST_JUDGED_S = 60
MOST_GROWTH = 0.05


def growth(samples: Sequence[Sample]) -> float | None:
    """By what share memory grew after the warm-up, along a line fitted to it; None if it was too short to tell."""
    if not samples or samples[-1].seconds - samples[0].seconds < SHORTEST_JUDGED_S:
        return None
    warm = samples[int(len(samples) * WARM_UP_SHARE) :]
    mean_s = sum(sample.seconds for sample in warm) / len(warm)
    mean_bytes = sum(sample.resident_bytes for sample in warm) / len(warm)
    covariance = sum((sample.seconds - mean_s) * (sample.resident_bytes - mean_bytes) for sample in warm)
    variance = sum((sample.seconds - mean_s) ** 2 for sample in warm)
    return covariance / variance * (warm[-1].seconds - warm[0].seconds) / mean_bytes
