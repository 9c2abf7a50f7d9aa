"""Offsets in the JSON of Spark's Kafka connector, so that checkpoints are compatible. Pure rules.

`{"orders":{"0":23,"1":-2}}`: topic, partition, offset. In options, -2 is the earliest offset and -1 the latest.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ottla.core.errors import ConfigError
from ottla.core.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

LATEST: Final = -1
EARLIEST: Final = -2

Offsets = dict[TopicPartition, int]
OffsetTree = dict[str, dict[str, int]]


def to_tree(offsets: Mapping[TopicPartition, int]) -> OffsetTree:
    """The form that Spark writes to its checkpoint as JSON. Spark compares the text, so the order of keys matters."""
    tree: OffsetTree = {}
    for at, offset in sorted(offsets.items()):
        tree.setdefault(at.topic, {})[str(at.partition)] = offset
    return tree


def from_tree(tree: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in tree.items()
        for partition, offset in partitions.items()
    }


def parse_offsets(text: str, option: str) -> Offsets:
    """Parse the JSON of an option: offsets or timestamps."""
    example = '{"orders":{"0":23,"1":-2}}'
    tree = _parse_json(text, option, example)
    try:
        offsets = from_tree(tree)
    except (AttributeError, TypeError, ValueError):
        raise ConfigError(f"{option} must be JSON like {example}, got {text}") from None
    if not all(type(offset) is int for offset in offsets.values()):  # True is an int, too
        raise ConfigError(f"{option} must be JSON like {example}, got {text}")
    return offsets


def parse_partitions(text: str, option: str) -> tuple[TopicPartition, ...]:
    """Parse the JSON of the option `assign`."""
    example = '{"orders":[0,1]}'
    tree = _parse_json(text, option, example)
    try:
        return tuple(sorted(TopicPartition(topic, int(each)) for topic, those in tree.items() for each in those))
    except (AttributeError, TypeError, ValueError):
        raise ConfigError(f"{option} must be JSON like {example}, got {text}") from None


def _parse_json(text: str, option: str, example: str) -> dict[str, Any]:
    try:
        tree = json.loads(text)
    except ValueError:
        tree = None
    if not isinstance(tree, dict):
        raise ConfigError(f"{option} must be JSON like {example}, got {text}")
    return tree


@dataclass(frozen=True, slots=True)
class Bound:
    """The start or the end of a read: an offset or a timestamp, per partition or for all."""

    option: str
    is_time: bool = False
    everywhere: int | None = None
    """-2 is the earliest offset, -1 the latest; or a timestamp in ms."""
    by_partition: Offsets = field(default_factory=dict)
    falls_back_to_latest: bool = False
    """Use the end offset, and no error, for a partition without a record at or after the timestamp."""

    def wanted(self, partitions: set[TopicPartition]) -> Offsets:
        """The requested offsets of each of these partitions."""
        if self.everywhere is not None:
            return dict.fromkeys(partitions, self.everywhere)
        if missing := sorted(partitions - self.by_partition.keys()):
            raise ConfigError(f"{self.option} must name every partition that is read; missing: {_some(missing)}")
        if unknown := sorted(self.by_partition.keys() - partitions):
            raise ConfigError(f"{self.option} names partitions that do not exist or are not read: {_some(unknown)}")
        return dict(self.by_partition)


def _some(partitions: list[TopicPartition]) -> str:
    shown = ", ".join(map(str, partitions[:5]))
    return shown if len(partitions) <= 5 else f"{shown} and {len(partitions) - 5} more"
