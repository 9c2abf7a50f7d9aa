"""Periodic maintenance: retention, producer expiry, checkpoints, removal of files."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ApiError
from ottla.storage.files import remove_deleted, storage_errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from pathlib import Path

    from ottla.broker.broker import Broker

_logger: Final = logging.getLogger(__name__)


class Maintenance:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._tasks: list[asyncio.Task[None]] = []
        self._removals: set[asyncio.Future[None]] = set()
        self._checkpoints: set[asyncio.Task[None]] = set()
        self._checkpointing = asyncio.Lock()

    def start(self) -> None:
        config, groups = self._broker.config, self._broker.settings.groups
        transactions = self._broker.settings.transactions
        self._tasks = [
            asyncio.create_task(self._every(config.retention_check_interval_ms, self.apply_retention)),
            asyncio.create_task(self._every(config.checkpoint_interval_ms, self.checkpoint)),
            asyncio.create_task(self._every(config.compaction_check_interval_ms, self._compact)),
            asyncio.create_task(self._every(groups.offsets_retention_check_interval_ms, self._expire_offsets)),
            asyncio.create_task(
                self._every(transactions.id_expiration_check_interval_ms, self._forget_transactional_ids)
            ),
        ]
        security = self._broker.security
        if security.tokens is not None:
            interval_ms = security.config.delegation_token_expiry_check_interval_ms
            self._tasks.append(asyncio.create_task(self._every(interval_ms, security.delete_expired_tokens)))
        if (key_rotation := self._broker.key_rotation) is not None:
            self._tasks.append(asyncio.create_task(self._every(key_rotation.interval_ms, key_rotation.check)))
        self.remove(self._broker.data_dir.deleted_folders())

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._checkpoints, return_exceptions=True)

    async def _every(self, interval_ms: int, work: Callable[[], Awaitable[None] | None]) -> None:
        while True:
            await asyncio.sleep(interval_ms / 1000)
            try:
                to_wait_for = work()
                if to_wait_for is not None:
                    await to_wait_for
            except ApiError as refused:
                _logger.error("maintenance failed, retrying: %s", refused)

    def _expire_offsets(self) -> None:
        if self._broker.has_had_groups:
            self._broker.groups.expire_offsets()

    def _forget_transactional_ids(self) -> None:
        if self._broker.has_had_transactions:
            self._broker.transactions.forget_expired()

    def _compact(self) -> Awaitable[None]:
        return self._broker.compactor.check()

    def apply_retention(self) -> None:
        from ottla.storage.retention import delete_expired  # not needed at the start

        self.remove(self._broker.data_dir.retry_deletions())
        now_ms = self._broker.steady_clock.now_ms()
        for partition in self._broker.topics.partitions_here():
            try:
                self.remove(delete_expired(partition.log, now_ms, partition.retention_limit))
                partition.log.producers.expire(now_ms, partition.log.config.producer_id_expiration_ms)
            except ApiError as refused:
                _logger.error("%s: could not delete old segments: %s", partition.at, refused)

    async def checkpoint(self) -> None:
        """Checkpoint log start offsets and recovery points; durable when this returns."""
        self._checkpoints.add(task := asyncio.create_task(self._checkpoint()))
        task.add_done_callback(self._checkpoints.discard)
        # Shielded: it completes even if the client disconnects.
        await asyncio.shield(task)

    async def _checkpoint(self) -> None:
        """Like `FolderCheckpoints.write`, without blocking the event loop."""
        loop, data_dir = asyncio.get_running_loop(), self._broker.data_dir
        async with self._checkpointing:
            written = data_dir.checkpoints.begin()
            await loop.run_in_executor(None, written.run)
            placed = data_dir.checkpoints.place(written)
            await loop.run_in_executor(None, placed.run)
            with storage_errors("syncing checkpoints"):
                data_dir.checkpoints.confirm(placed)

    def remove(self, doomed: Iterable[Path]) -> None:
        """Remove unused files and folders, in a worker thread."""
        loop = asyncio.get_running_loop()
        for path in doomed:
            self._removals.add(removal := loop.run_in_executor(None, remove_deleted, path))
            removal.add_done_callback(self._removals.discard)
