"""Arguments with a special syntax: NAME=VALUE, and TOPIC:0,1,2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.errors import ConfigError
from ottla.core.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def pairs(option: str, given: Iterable[str]) -> dict[str, str]:
    """Parse repeated NAME=VALUE arguments."""
    found = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"{option}: expected NAME=VALUE, got {pair!r}")
        found[name.strip()] = value.strip()
    return found


def topics_and_partitions(option: str, given: Iterable[str]) -> dict[str, list[int] | None]:
    """TOPIC or TOPIC:0,1,2 (Kafka's notation): its partitions by topic, None for all."""
    found: dict[str, list[int] | None] = {}
    for text in given:
        topic, colon, numbers = text.partition(":")
        listed = numbers.split(",")
        if not topic or (colon and not all(number.isascii() and number.isdigit() for number in listed)):
            raise ConfigError(f"{option}: expected TOPIC or TOPIC:0,1,2, got {text!r}")
        before = found.get(topic, [])
        if not colon or before is None:
            found[topic] = None
        else:
            found[topic] = sorted({*before, *map(int, listed)})
    return found


def existing(wanted: Mapping[str, list[int] | None], known: Mapping[str, Iterable[int]]) -> list[TopicPartition]:
    """The selected partitions; all of them must exist."""
    found = []
    for topic, partitions in wanted.items():
        there = sorted(known[topic])
        for partition in there if partitions is None else partitions:
            if partition not in there:
                raise ConfigError(f"topic {topic!r} has no partition {partition}; it has {_counted(there)}")
            found.append(TopicPartition(topic, partition))
    return found


def _counted(partitions: list[int]) -> str:
    return f"{len(partitions)}: 0 to {partitions[-1]}" if len(partitions) > 1 else "only 0"
