"""A soak run: load with restarts, then load alone while memory is measured, then verification."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from bench.soak.admin import EXPIRING
from bench.soak.broker_process import BrokerProcess, free_port
from bench.soak.consumer_group import new_consumer
from bench.soak.ledger import At, Ledger
from bench.soak.load import Load
from bench.soak.producers import IDEMPOTENT
from bench.soak.reading import read_partition
from bench.soak.verify import MOST_GROWTH, Sample, Verdict, check_partition, check_topics, growth

RESTARTING_SHARE = 0.6
SECONDS_PER_RESTART = 25
SAMPLE_EVERY_S = 1.0


@dataclass(slots=True)
class Outcome:
    ledger: Ledger = field(default_factory=Ledger)
    violations: list[str] = field(default_factory=list)
    records: Verdict = field(default_factory=Verdict)
    stops: dict[str, int] = field(default_factory=lambda: {"SIGTERM": 0, "SIGKILL": 0})
    memory: list[Sample] = field(default_factory=list)
    """Resident memory from the last restart under load to the end of the load."""
    growth: float | None = None


def restart_times(seconds: float, rng: Random) -> list[float]:
    """Moments counted from the start; two at least, so that both kinds of stop happen."""
    count = max(2, int(seconds * RESTARTING_SHARE / SECONDS_PER_RESTART))
    return sorted(rng.uniform(0, seconds * RESTARTING_SHARE) for _ in range(count))


def soak(folder: Path, seconds: float, seed: int) -> Outcome:
    rng = Random(seed)
    outcome = Outcome()
    with BrokerProcess(folder, free_port(rng)) as broker:
        load = Load(broker.address, outcome.ledger, rng)
        load.start()
        began_s = time.monotonic()
        for number, moment in enumerate(restart_times(seconds, rng)):
            time.sleep(max(0.0, began_s + moment - time.monotonic()))
            restart(broker, (signal.SIGTERM, signal.SIGKILL)[number % 2], outcome)
        outcome.memory = watch_memory(broker, began_s + seconds)
        load.finish()
        restart(broker, signal.SIGKILL, outcome)
        judge_records(broker.address, load, outcome)
        judge_memory(outcome)
        stop(broker, signal.SIGTERM, outcome)
    outcome.violations += outcome.ledger.violations
    outcome.violations += [f"the broker said: {line}" for line in alarms(broker.log)]
    return outcome


def stop(broker: BrokerProcess, how: signal.Signals, outcome: Outcome) -> None:
    code = broker.end(how)
    if how is signal.SIGTERM and code != 0:
        outcome.violations.append(f"asked to stop, the broker exited with {code}")
    outcome.stops[how.name] += 1


def restart(broker: BrokerProcess, how: signal.Signals, outcome: Outcome) -> None:
    stop(broker, how, outcome)
    broker.start()


def watch_memory(broker: BrokerProcess, until_s: float) -> list[Sample]:
    samples = [Sample(time.monotonic(), broker.resident_bytes)]
    while time.monotonic() < until_s:
        time.sleep(SAMPLE_EVERY_S)
        samples.append(Sample(time.monotonic(), broker.resident_bytes))
    return samples


def judge_records(address: str, load: Load, outcome: Outcome) -> None:
    ledger, total = outcome.ledger, outcome.records
    outcome.violations += check_topics(ledger.topics, ledger.partitions, load.admin.existing())
    consumer = new_consumer(address)
    for topic, partitions in load.data_partitions().items():
        for at in (At(topic, partition) for partition in range(partitions)):
            stored = read_partition(consumer, at)
            verdict = check_partition(at, ledger.acks[at], stored, IDEMPOTENT, may_expire=topic == EXPIRING)
            outcome.violations += verdict.violations
            total.acknowledged += verdict.acknowledged
            total.expired += verdict.expired
            total.duplicates += verdict.duplicates
    consumer.close()
    if total.expired == 0:
        outcome.violations.append("retention deleted nothing")
    outcome.violations += [f"given up on: {failure}" for failure in ledger.failures]


def judge_memory(outcome: Outcome) -> None:
    outcome.growth = growth(outcome.memory)
    if outcome.growth is not None and outcome.growth > MOST_GROWTH:
        outcome.violations.append(f"memory grew by {outcome.growth:.1%} after the warm-up")


def alarms(log: Path) -> list[str]:
    """Unexpected warnings and errors in the broker's log."""
    return [line for line in log.read_text().splitlines() if "Traceback" in line or "CRITICAL" in line.upper()]
