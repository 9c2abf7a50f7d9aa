"""Offsets in the JSON of Spark's Kafka connector, so that a checkpoint moves between the two. Rules only.

`{"orders":{"0":23,"1":-2}}`: topic, partition, offset. In what a user gives, -2 is the beginning and -1 the end.
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
    """What Spark writes to its checkpoint as JSON. It compares text, so the order of keys matters."""
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
    """Offsets, or times, that a user gave as JSON."""
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
    """Partitions that a user gave as JSON."""
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
    """Where to begin or to end: at an offset or at a time, for each partition or for all."""

    option: str
    is_time: bool = False
    everywhere: int | None = None
    """-2 is the beginning, -1 the end; or a time in ms."""
    by_partition: Offsets = field(default_factory=dict)
    falls_back_to_latest: bool = False
    """Where nothing is as new as the time: the end, and not an error."""

    def wanted(self, partitions: set[TopicPartition]) -> Offsets:
        """The requested offsets of each of these partitions."""
        if self.everywhere is not None:
            return dict.fromkeys(partitions, self.everywhere)
        if missing := sorted(partitions - self.by_partition.keys()):
            raise ConfigError(
                f"{self.option} must name every partition that is read; it has nothing for {_some(missing)}"
            )
        if unknown := sorted(self.by_partition.keys() - partitions):
            raise ConfigError(f"{self.option} names {_some(unknown)}, which there is not, or which is not read")
        return dict(self.by_partition)


def _some(partitions: list[TopicPartition]) -> str:
    shown = ", ".join(map(str, partitions[:5]))
    return shown if len(partitions) <= 5 else f"{shown} and {len(partitions) - 5} more"
