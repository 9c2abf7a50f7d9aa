"""Closing many logs, with parallel fsyncs."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ottla.core.errors import StorageError
from ottla.storage.flushing import Flush

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ottla.core.ids import TopicPartition
    from ottla.storage.partition_log import PartitionLog

    RunAll = Callable[[Callable[[Flush], None], Iterable[Flush]], Iterable[None]]

_logger: Final = logging.getLogger(__name__)


def close_logs(logs: list[tuple[TopicPartition, PartitionLog]], run_all: RunAll) -> list[TopicPartition]:
    """Close these; returns those that could not be closed."""
    failed: list[TopicPartition] = []

    @contextmanager
    def closing(at: TopicPartition) -> Iterator[None]:
        try:
            yield
        except StorageError as refused:
            failed.append(at)
            _logger.error("%s: could not close the log cleanly: %s", at, refused)

    flushes: list[tuple[TopicPartition, PartitionLog, Flush]] = []
    for at, log in logs:
        with closing(at):
            flushes.append((at, log, log.begin_close()))
    for _ in run_all(Flush.run, [flush for _, _, flush in flushes]):
        pass
    for at, log, flush in flushes:
        with closing(at):
            log.finish_close(flush)
    return failed
