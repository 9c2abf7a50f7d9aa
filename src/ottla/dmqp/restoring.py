"""Restores the next sequence id from the logs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ottla.broker.interfaces.fetched import READ_UNCOMMITTED
from ottla.dmqp.sequences import last_sequence

if TYPE_CHECKING:
    from ottla.dmqp.shard_log import ShardLog

_FIRST_STEP: Final = 16
_LONGEST_STEP: Final = 4096


async def highest_sequence(log: ShardLog, floor: int) -> int | None:
    """The highest sequence id of the messages from offset `floor` on. Sequence ids ascend within a shard, so it is the
    last one.

    Searched backwards: it is the last record, unless Kafka clients also write to the topic.
    """
    first = max(floor, log.start)
    until = log.end
    step = _FIRST_STEP
    while until > first:
        begin = max(first, until - step)
        found = await _last_between(log, begin, until)
        if found is not None:
            return found
        until = begin
        step = min(2 * step, _LONGEST_STEP)
        await asyncio.sleep(0)
    return None


async def _last_between(log: ShardLog, begin: int, until: int) -> int | None:
    found = None
    offset = begin
    while offset < until:
        before = offset
        # Including records behind an open transaction.
        for piece in await log.read(offset, READ_UNCOMMITTED):
            offset = piece.next_offset
            last = last_sequence(record for record in piece.records if record.offset < until)
            found = found if last is None else last
        if offset == before:
            break
    return found
