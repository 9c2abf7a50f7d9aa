"""Offsets in a file: lines of topic,partition,offset, which Kafka's kafka-consumer-groups reads and writes too."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ConfigError
from ottla.core.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_FIELDS: Final = 3


def to_lines(offsets: Mapping[TopicPartition, int]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([where.topic, where.partition, offset] for where, offset in sorted(offsets.items()))
    return out.getvalue()


def from_lines(lines: Iterable[str], name: str) -> dict[TopicPartition, int]:
    """Parse offsets; `name` is the file's name for errors."""
    found: dict[TopicPartition, int] = {}
    reader = csv.reader(lines)
    for row in reader:
        if not row:
            continue
        where, offset = _read(row, f"{name}, line {reader.line_num}")
        if where in found:
            raise ConfigError(f"{name}, line {reader.line_num}: {where} is there twice")
        found[where] = offset
    if not found:
        raise ConfigError(f"{name} has no offsets; expected lines such as orders,0,42")
    return found


def _read(row: list[str], place: str) -> tuple[TopicPartition, int]:
    if len(row) != _FIELDS or not all(_is_number(text) for text in row[1:]):
        raise ConfigError(f"{place}: expected topic,partition,offset such as orders,0,42, got {','.join(row)!r}")
    return TopicPartition(row[0], int(row[1])), int(row[2])


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
