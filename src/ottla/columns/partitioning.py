"""Partitioning of tables as text: `day(_timestamp)`, `bucket(16, id)`, `country`. Pure rules."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ottla.columns.ddl import split_outside
from ottla.core.closest import suggestion
from ottla.core.errors import ConfigError

_FORM: Final = re.compile(
    r"\s*(?:(?P<name>[a-z]+)\s*\(\s*(?:(?P<size>\d+)\s*,\s*)?(?P<inner>[^(),]+?)\s*\)|(?P<plain>[^(),]+?))\s*"
)
_SIZED: Final = ("bucket", "truncate")
_UNSIZED: Final = ("year", "month", "day", "hour", "identity")


class PartitionField(NamedTuple):
    column: str
    transform: str
    """As Iceberg writes it: day, bucket[16], identity."""

    @property
    def name(self) -> str:
        """Of the partition, as Spark names it."""
        word = self.transform.partition("[")[0]
        return self.column if word == "identity" else f"{self.column}_{'trunc' if word == 'truncate' else word}"


def parse_partitioning(text: str) -> tuple[PartitionField, ...]:
    """Fields with commas in between; none for an empty text."""
    return tuple(_field(part) for part in split_outside(text))


def _field(text: str) -> PartitionField:
    match = _FORM.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"invalid partitioning {text.strip()!r} (use e.g. day(_timestamp), bucket(16, id) or country)"
        )
    if match["plain"]:
        return PartitionField(match["plain"], "identity")
    name, size = match["name"], match["size"]
    if name in _SIZED and size:
        return PartitionField(match["inner"], f"{name}[{size}]")
    if name in _UNSIZED and not size:
        return PartitionField(match["inner"], name)
    if name in _SIZED:
        raise ConfigError(f"{name} needs a number: {name}(16, {match['inner']})")
    raise ConfigError(f"unknown partition transform {name!r}{suggestion(name, (*_SIZED, *_UNSIZED))}")
