"""Opens a partition's log in steps, so that its recovery can run in another thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.core.ids import TopicId, TopicPartition
    from ottla.storage.partition_log import PartitionLog
    from ottla.storage.segment_files.open_files import OpenFiles


class LogOpening:
    """Begun and ended by `DataDir`; `run` may be called in any thread."""

    def __init__(
        self,
        at: TopicPartition,
        topic_id: TopicId | None,
        files: OpenFiles,
        open_log: Callable[[], PartitionLog],
        *,
        is_new: bool,
    ) -> None:
        self.at = at
        self.topic_id = topic_id
        self.files = files
        """Used only by this log as long as it is being opened."""
        self.is_new = is_new
        self._open_log = open_log
        self._log: PartitionLog | None = None
        self._failure: Exception | None = None

    def run(self) -> None:
        """Open and recover the log. Errors are raised by `result`."""
        try:
            self._log = self._open_log()
        except Exception as failed:  # noqa: BLE001 - raised to the one who ends the opening
            self._failure = failed

    def result(self) -> PartitionLog:
        if self._log is None:
            raise self._failure or AssertionError("the log was not opened yet")
        return self._log

    def abandon(self) -> bool:
        """Close the log without using it; returns whether it was opened."""
        if self._log is not None:
            self._log.abandon()
        return self._log is not None
