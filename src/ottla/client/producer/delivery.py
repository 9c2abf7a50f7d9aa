"""The outcome of a send: the record's offset, or the error."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import msgspec

from ottla.client.errors import ClientError, RequestTimedOut
from ottla.client.producer.batch import NO_OFFSET, NO_TIMESTAMP, Refused

if TYPE_CHECKING:
    from ottla.client.producer.batch import Batch


class RecordMetadata(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    offset: int
    """-1 if the broker did not return it: with acks=0, or for a duplicate."""
    timestamp: int
    """In milliseconds; the broker's time with LogAppendTime."""


async def delivered(batch: Batch, index: int, timestamp: int) -> RecordMetadata:
    """Wait until a record is acknowledged; raise its error."""
    if not batch.is_done:
        await _told(batch)
    return _place_of(batch, index, timestamp)


def wait_until_delivered(batch: Batch, index: int, timestamp: int, timeout_s: float | None) -> RecordMetadata:
    """Like `delivered`, for a thread that may block."""
    if asyncio._get_running_loop() is not None:  # noqa: SLF001 - the only way to ask without an exception
        raise ClientError("an event loop runs in this thread; await the delivery instead of blocking the loop")
    done = threading.Event()
    batch.when_done(done.set)
    if batch.is_done:  # perhaps already before the callback was registered
        done.set()
    if not done.wait(timeout_s):
        raise RequestTimedOut(f"{batch.topic}-{batch.partition} did not acknowledge within {timeout_s} s")
    return _place_of(batch, index, timestamp)


def _place_of(batch: Batch, index: int, timestamp: int) -> RecordMetadata:
    outcome, place = batch.outcome_of(index)
    if isinstance(outcome, Refused):
        error = outcome.error_of(place)
        # The error is copied for each record of the batch, so that each has its own traceback.
        raise error.with_traceback(None) from error.__cause__
    offset = outcome.base_offset + place if outcome.base_offset != NO_OFFSET else NO_OFFSET
    if outcome.log_append_time_ms != NO_TIMESTAMP:
        timestamp = outcome.log_append_time_ms
    return RecordMetadata(batch.topic, batch.partition, offset, timestamp)


async def finished(batch: Batch) -> None:
    """Wait until the batch is done, with any outcome."""
    if not batch.is_done:
        await _told(batch)


def _told(batch: Batch) -> asyncio.Future[None]:
    """A separate future per waiter: cancelling a shared one would cancel all."""
    done = asyncio.get_running_loop().create_future()

    def tell() -> None:
        if not done.done():
            done.set_result(None)

    batch.when_done(tell)
    return done
