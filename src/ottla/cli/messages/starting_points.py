"""Positions in a topic as options: earliest, latest, an offset, a number of messages before the end, or a time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeAlias

import click
from msgspec import Struct

from ottla.cli.messages.lines import milliseconds
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from ottla.client.consumer.consumer import Consumer


class Beginning(Struct, frozen=True):
    """The earliest message."""


class End(Struct, frozen=True):
    """New messages only."""


class AtOffset(Struct, frozen=True):
    offset: int


class LastFew(Struct, frozen=True):
    """This many messages of each partition."""

    count: int


class AtTime(Struct, frozen=True):
    timestamp_ms: int


StartingPoint: TypeAlias = Beginning | End | AtOffset | LastFew | AtTime

_ENDS: Final[dict[str, StartingPoint]] = {
    "beginning": Beginning(),
    "earliest": Beginning(),
    "end": End(),
    "latest": End(),
}
_AGO: Final = re.compile(r"(\d+)\s*([smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def starting_point(text: str, now: datetime | None = None, *, option: str = "--from") -> StartingPoint:
    """Parse the option: earliest, latest, 42, -10, 15m, or ISO 8601."""
    if text in _ENDS:
        return _ENDS[text]
    if re.fullmatch(r"-?\d+", text):
        number = int(text)
        return LastFew(-number) if number < 0 else AtOffset(number)
    if ago := _AGO.fullmatch(text):
        at = (now or datetime.now(UTC)) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return AtTime(round(at.timestamp() * 1000))
    try:
        return AtTime(milliseconds(text))
    except ConfigError:
        raise ConfigError(
            f"{option}: expected earliest, latest, an offset, -N for the last N, 15m for fifteen minutes ago, "
            f"or a time such as 2026-11-15T09:30, got {text!r}"
        ) from None


async def seek_to(consumer: Consumer[bytes, bytes], point: StartingPoint) -> None:
    """Seek every assigned partition to this position."""
    partitions = list(consumer.assignment)
    match point:
        case Beginning():
            consumer.seek_to_beginning()
        case End():
            consumer.seek_to_end()
        case AtOffset(offset):
            first = await consumer.beginning_offsets(*partitions)
            for at, end in (await consumer.end_offsets(*partitions)).items():
                nearest = max(first[at], min(offset, end))
                consumer.seek(at, nearest)
                if nearest != offset:
                    click.echo(f"{at} has no offset {offset}: reading from {nearest}", err=True)
        case LastFew(count):
            first = await consumer.beginning_offsets(*partitions)
            for at, end in (await consumer.end_offsets(*partitions)).items():
                consumer.seek(at, max(first[at], end - count))
        case AtTime(timestamp_ms):
            ends = await consumer.end_offsets(*partitions)
            found = await consumer.offsets_for_times(dict.fromkeys(partitions, timestamp_ms))
            for at, found_at in found.items():
                consumer.seek(at, ends[at] if found_at is None else found_at)
