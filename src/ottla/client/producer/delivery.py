"""What a send comes to: where the record is, or why it is nowhere."""

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
    """-1 if the broker did not say: with acks=0, or when it recognised a record that it has already."""
    timestamp: int
    """In milliseconds; the broker's own if the topic keeps the time of appending."""


async def delivered(batch: Batch, index: int, timestamp: int) -> RecordMetadata:
    """Wait until a record is acknowledged; raise what it was refused with."""
    if not batch.is_done:
        await _told(batch)
    return _place_of(batch, index, timestamp)


def wait_until_delivered(batch: Batch, index: int, timestamp: int, timeout_s: float | None) -> RecordMetadata:
    """The same for a thread that may block."""
    if asyncio._get_running_loop() is not None:  # noqa: SLF001 - the only way to ask without an exception
        raise ClientError("an event loop runs in this thread; await the delivery instead of blocking the loop")
    done = threading.Event()
    batch.when_done(done.set)
    if batch.is_done:  # perhaps since before it could be told whom to call
        done.set()
    if not done.wait(timeout_s):
        raise RequestTimedOut(f"{batch.topic}-{batch.partition} has acknowledged nothing in {timeout_s} s")
    return _place_of(batch, index, timestamp)


def _place_of(batch: Batch, index: int, timestamp: int) -> RecordMetadata:
    outcome, place = batch.outcome_of(index)
    if isinstance(outcome, Refused):
        error = outcome.error_of(place)
        # The same error is raised to everybody in the batch, each with a traceback of its own.
        raise error.with_traceback(None) from error.__cause__
    offset = outcome.base_offset + place if outcome.base_offset != NO_OFFSET else NO_OFFSET
    if outcome.log_append_time_ms != NO_TIMESTAMP:
        timestamp = outcome.log_append_time_ms
    return RecordMetadata(batch.topic, batch.partition, offset, timestamp)


async def finished(batch: Batch) -> None:
    """Wait until the batch is done, whatever became of it."""
    if not batch.is_done:
        await _told(batch)


def _told(batch: Batch) -> asyncio.Future[None]:
    """One for each who waits: a future that is shared would be cancelled for all with one of them."""
    done = asyncio.get_running_loop().create_future()

    def tell() -> None:
        if not done.done():
            done.set_result(None)

    batch.when_done(tell)
    return done
