"""A short soak test, and tests of its checks."""

from __future__ import annotations

import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from bench.soak.ledger import Ack, At, make_value
from bench.soak.verify import (
    SHORTEST_JUDGED_S,
    Sample,
    Stored,
    Verdict,
    check_commits,
    check_partition,
    check_topics,
    growth,
)

AT = At("orders", 0)
IDEMPOTENT = {"once"}
MIB = 1 << 20


def stored(*numbers: int, producer: str = "once", start: int = 0) -> list[Stored]:
    return [Stored(start + at, make_value(producer, number, b"x")) for at, number in enumerate(numbers)]


def ack(offset: int, number: int, producer: str = "once") -> Ack:
    return Ack(offset, producer, number, zlib.crc32(make_value(producer, number, b"x")))


def check(acks: list[Ack], found: list[Stored], *, may_expire: bool = False) -> Verdict:
    return check_partition(AT, acks, found, IDEMPOTENT, may_expire=may_expire)


@pytest.mark.timeout(180)
def test_a_short_soak_with_restarts_finds_no_violation(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.soak", "--seconds", "20", "--seed", "3", "--folder", str(tmp_path)]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=170, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| promises broken | 0 |" in done.stdout


def test_records_where_they_were_acknowledged_are_in_order() -> None:
    verdict = check([ack(0, 0), ack(1, 1)], stored(0, 1))
    assert (verdict.violations, verdict.acknowledged, verdict.expired) == ([], 2, 0)


def test_an_acknowledged_record_that_is_missing_is_noticed() -> None:
    assert check([ack(0, 0), ack(2, 2)], stored(0, 1)).violations


def test_an_acknowledged_record_at_another_offset_is_noticed() -> None:
    assert check([ack(0, 1), ack(1, 0)], stored(0, 1)).violations


def test_a_changed_value_is_noticed() -> None:
    assert check([ack(0, 0)], [Stored(0, make_value("once", 0, b"y"))]).violations


def test_a_record_below_the_start_may_be_missing_only_where_retention_deletes() -> None:
    acks, found = [ack(0, 0), ack(5, 5)], stored(5, start=5)
    assert check(acks, found).violations
    verdict = check(acks, found, may_expire=True)
    assert (verdict.violations, verdict.expired) == ([], 1)


def test_a_repeated_record_is_a_violation_only_of_an_idempotent_producer() -> None:
    assert check([], stored(0, 1, 1)).violations
    verdict = check([], stored(0, 1, 0, 1, producer="plain"))
    assert (verdict.violations, verdict.duplicates) == ([], 2)


@pytest.mark.parametrize("producer", ["once", "plain"])
def test_records_out_of_order_are_noticed(producer: str) -> None:
    assert check([], stored(0, 2, 1, producer=producer)).violations


def test_topics_are_compared_with_acknowledged_operations() -> None:
    promised = {"made": True, "deleted": False, "unsure": None}
    assert check_topics(promised, {"made": 2}, {"made": 2}) == []
    assert check_topics(promised, {"made": 3}, {"made": 2})
    assert check_topics(promised, {}, {"made": 1, "deleted": 1})
    assert check_topics(promised, {}, {"unsure": 1})


def test_a_commit_that_goes_back_is_noticed() -> None:
    assert check_commits({AT: 5}, {AT: 6}, {AT: 6}) == []
    assert check_commits({AT: 5}, {}, {AT: 4})
    assert check_commits({}, {AT: 5}, {AT: 4})


def memory(seconds: int, per_second: int) -> list[Sample]:
    warm_up = [Sample(second, (10 + second) * MIB) for second in range(seconds // 4)]
    return [*warm_up, *(Sample(second, 50 * MIB + per_second * second) for second in range(seconds // 4, seconds))]


def test_memory_that_grows_after_the_warm_up_is_noticed() -> None:
    grown = growth(memory(200, 100_000))
    assert grown is not None
    assert grown > 0.2


def test_memory_that_settles_after_the_warm_up_has_not_grown() -> None:
    assert growth(memory(200, 0)) == pytest.approx(0)


def test_memory_is_not_judged_by_a_short_time() -> None:
    assert growth(memory(SHORTEST_JUDGED_S, 100_000)) is None
