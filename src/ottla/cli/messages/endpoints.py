"""`--to`: where `ottla consume` stops, in each partition."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ottla.cli.messages.starting_points import AtOffset, AtTime, Beginning, End, LastFew, starting_point
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from ottla.cli.messages.starting_points import StartingPoint
    from ottla.client.consumer.consumer import Consumer
    from ottla.core.ids import TopicPartition


def end_point(text: str) -> StartingPoint:
    """Parse the option: latest, an offset, -N, 15m, or ISO 8601; the first message that is not read."""
    point = starting_point(text, option="--to")
    if isinstance(point, Beginning):
        raise ConfigError("--to: nothing is before earliest")
    if isinstance(point, AtTime) and point.timestamp_ms > time.time() * 1000:
        raise ConfigError(f"--to: {text} is in the future; leave --to out to wait for new messages")
    return point


async def ends_of(consumer: Consumer[bytes, bytes], point: StartingPoint) -> dict[TopicPartition, int]:
    """The offset before which to stop, by partition."""
    partitions = list(consumer.assignment)
    if isinstance(point, AtOffset):
        return dict.fromkeys(partitions, point.offset)
    ends = await consumer.end_offsets(*partitions)
    match point:
        case LastFew(count):
            return {at: end - count for at, end in ends.items()}
        case AtTime(timestamp_ms):
            found = await consumer.offsets_for_times(dict.fromkeys(partitions, timestamp_ms))
            return {at: ends[at] if offset is None else offset for at, offset in found.items()}
        case End() | _:
            return ends
