"""The plan of a history by seed: the cluster, its load, and faults and actions with their times."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Event:
    at_s: float
    kind: str
    seed: int
    """Seed of its random choices: target and duration."""


@dataclass(frozen=True)
class Plan:
    seed: int
    profile: str
    nodes: int
    flush: str
    events: tuple[Event, ...]
    calm_s: float = 90.0
    """All is well again within this time after the last fault."""


PROCESSES: Final = {
    "kill": 10,
    "power": 6,
    "strand": 8,
    "stop": 4,
    "roll": 2,
    "pause": 8,
    "clock": 3,
    "drift": 2,
    "slow_threads": 3,
    "breathe": 4,
}
LINKS: Final = {"cut": 10, "cut_one_way": 8, "isolate": 6, "reset": 8, "slow": 6}
CATALOG: Final = {"cut_catalog": 8, "expire": 4, "break_catalog": 5, "slow_catalog": 4, "controller": 4}
MOVES: Final = {"reassign": 16, "redirect": 8, "cancel": 8, "elect": 4, "drain": 2}
TOPICS: Final = {"recreate": 10, "delete_records": 12, "configure": 6, "grow": 1}
DISKS: Final = {"wipe": 6, "broken_folder": 4, "full_disk": 4, "rot": 4}
LOSSES: Final = {"power_unsynced": 8, "older_disk": 4}
"""What one node has lost may be asked of it again before the others are back: see docs/simulation.md."""

_ALL: Final = PROCESSES | LINKS | CATALOG
PROFILES: Final[dict[str, dict[str, int]]] = {
    "network": _ALL,
    "moves": _ALL | MOVES,
    "topics": _ALL | TOPICS,
    "disks": _ALL | DISKS,
    "transactions": _ALL | {"elect": 4},
    "groups": _ALL | {"elect": 4},
    "sharing": _ALL | {"elect": 4},
    "keys": _ALL | {"elect": 4, "reassign": 4},
    "queues": _ALL | {"elect": 8, "reassign": 4},
    "everything": _ALL | MOVES | TOPICS | DISKS,
}
UNSAFE: Final[dict[str, dict[str, int]]] = {"losses": _ALL | LOSSES}
"""Only by name: unsynced records and disks are lost."""


def plan(seed: int, count: int = 200, profile: str | None = None) -> Plan:
    chance = random.Random(seed)
    drawn = chance.choice(list(PROFILES))
    profile = profile or drawn
    # Each history prefers different faults.
    weights = {kind: weight * chance.choice((0.2, 1, 1, 3)) for kind, weight in (PROFILES | UNSAFE)[profile].items()}
    pace_s = chance.choice((0.03, 0.05, 0.08))
    at_s = 1.0
    events = []
    for _ in range(count):
        at_s += chance.expovariate(1 / pace_s)
        [kind] = chance.choices(list(weights), list(weights.values()))
        if kind == "breathe":
            at_s += chance.uniform(0.2, 1.0)
        events.append(Event(at_s, kind, chance.getrandbits(32)))
    nodes = chance.choice((3, 3, 3, 3, 4, 4, 5, 5, 7))
    return Plan(seed, profile, nodes, chance.choice(("ack", "ack", "os", "interval")), tuple(events))


def save(planned: Plan, path: Path) -> None:
    """Keep a plan: its seed stands for another one when kinds of faults or their weights change."""
    head = json.dumps(
        {"seed": planned.seed, "profile": planned.profile, "nodes": planned.nodes, "flush": planned.flush}
    )
    events = ",\n".join(json.dumps([event.at_s, event.kind, event.seed]) for event in planned.events)
    path.write_text(f'{head[:-1]}, "events": [\n{events}\n]}}\n')


def load(path: Path) -> Plan:
    saved = json.loads(path.read_text())
    events = tuple(Event(*event) for event in saved.pop("events"))
    return Plan(**saved, events=events)
