"""Decompression of clients' batches: small ones in the event loop, large ones in a thread, all with a limit.

A batch of a few kilobytes may decompress to gigabytes. Each is first decompressed up to AT_ONCE_BYTES; a larger one is
decompressed again in a thread, a few at a time, while other requests are served.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from ottla.records.compression import Compression, DecompressedTooLarge
from ottla.records.recompress import recompressed

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.config import BrokerConfig
    from ottla.records.batch import BatchHeader

AT_ONCE_BYTES: Final = 128 * 1024
"""Batches up to this size are decompressed in the event loop, which takes a millisecond or less."""
_ANY_RATIO_BYTES: Final = 4 << 20
"""The ratio is not checked below this size: a small batch of zeros is harmless."""
_THREADS: Final = 2

T = TypeVar("T")


class Allowance:
    """The remaining decompression budget of a request."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


class Inflating:
    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._threads = asyncio.Semaphore(_THREADS)
        self.in_threads = 0
        """The number of batches decompressed in a thread."""
        self.refused = 0
        """The number of batches over the limit."""

    def allowance(self) -> Allowance:
        return Allowance(self._config.max_decompressed_request_bytes)

    def limit(self, compressed_bytes: int, at_least: int = 0) -> int:
        """The limit for a batch of this size; `at_least`: the topic's limit for uncompressed batches."""
        most = max(self._config.max_decompressed_bytes, at_least)
        return min(most, max(_ANY_RATIO_BYTES, at_least, compressed_bytes * self._config.max_decompression_ratio))

    async def in_thread(self, work: Callable[[int], T], limit: int, allowance: Allowance) -> T:
        """Run `work` with this limit in a thread, and return its result. Raises DecompressedTooLarge."""
        await self._threads.acquire()
        self.in_threads += 1
        running = asyncio.get_running_loop().run_in_executor(None, _outcome, work, min(limit, allowance.left))
        # Released when the work ends, not when its caller gives up: the thread continues.
        running.add_done_callback(lambda _: self._threads.release())
        outcome = await asyncio.shield(running)
        if isinstance(outcome, _Failed):
            self.refused += isinstance(outcome.error, DecompressedTooLarge)
            raise outcome.error
        return outcome

    async def uncompressed(self, batch: memoryview, header: BatchHeader, allowance: Allowance) -> memoryview:
        """The batch without compression. Raises DecompressedTooLarge."""
        if header.compression == Compression.NONE:
            return batch
        inflate = partial(uncompressed, batch)
        try:
            made = inflate(AT_ONCE_BYTES)
        except DecompressedTooLarge:
            made = await self.in_thread(inflate, self.limit(len(batch)), allowance)
        allowance.left -= len(made)
        return made


def uncompressed(batch: memoryview, limit: int) -> memoryview:
    """The batch without compression. Raises DecompressedTooLarge."""
    return memoryview(recompressed(batch, Compression.NONE, None, limit))


class _Failed(NamedTuple):
    error: Exception


def _outcome(work: Callable[[int], T], limit: int) -> T | _Failed:
    try:
        return work(limit)
    except Exception as error:  # noqa: BLE001 - raised again by the caller, if that is still there
        # The frames of its traceback, and of its cause's, reference all decompressed data.
        error.__context__ = None
        return _Failed(error.with_traceback(None))
