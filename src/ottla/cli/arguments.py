"""Arguments with a special syntax: NAME=VALUE, sizes and durations, and TOPIC:0,1,2."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Literal

import click

from ottla.core.config_values import quantity
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


def config_pairs(option: str, given: Iterable[str]) -> dict[str, str]:
    """Parse repeated NAME=VALUE arguments of Kafka configs, with units: `retention.ms=7d`, `segment.bytes=64MiB`."""
    return {name: _in_base_units(option, name, text) for name, text in pairs(option, given).items()}


def _in_base_units(option: str, name: str, text: str) -> str:
    unit: Literal["bytes", "ms"] | None = "ms" if name.endswith(".ms") else "bytes" if name.endswith(".bytes") else None
    if unit is None or not any(character.isalpha() for character in text):
        return text
    try:
        return str(quantity(unit, text))
    except ValueError:
        example = "30s, 12h or 7d" if unit == "ms" else "512KiB, 10MiB or 1GB"
        raise ConfigError(f"{option}: {name}: expected a number of {unit}, or e.g. {example}, got {text!r}") from None


class ByteRate(click.ParamType[float]):
    """Bytes per second: 1000000, or 10MiB."""

    name = "bytes"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        for read in (float, partial(quantity, "bytes")):
            with suppress(ValueError):
                if 0 <= (rate := read(str(value))) < math.inf:
                    return rate
        return self.fail(f"invalid rate {value!r} (use bytes per second, e.g. 1000000 or 10MiB)", param, ctx)


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
