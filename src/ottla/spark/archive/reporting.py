"""Status reports of an archiver, like those of a pipeline, for REST and the console."""

from __future__ import annotations

import os
import socket
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.core.pipeline_status import HEARTBEAT_MS, PipelineStatus, QueryStatus
from ottla.spark.pipelines.reporting import Reporter

if TYPE_CHECKING:
    from typing import Self

    from ottla.client.blocking.background import Background
    from ottla.core.pipeline_status import State
    from ottla.spark.archive.archiver import Done


class ArchiveReport:
    """While entered, it reports periodically that it is running, however long a round takes."""

    def __init__(self, link: Background, topic: str, location: str, *, is_following: bool) -> None:
        self._reporter = Reporter(link)
        self._end: State = "stopped" if is_following else "finished"
        self._query = QueryStatus(name=topic, sink=f"archive {location}")
        self._status = PipelineStatus(
            name=f"archive-{topic}",
            state="running",
            started_ms=int(time.time() * 1000),
            host=socket.gethostname(),
            pid=os.getpid(),
        )
        self._is_over = threading.Event()
        self._beating = threading.Thread(target=self._beat, name="ottla-archive-report", daemon=True)

    def __enter__(self) -> Self:
        self._beating.start()
        return self

    def __exit__(self, _: object, failed: BaseException | None, __: object) -> None:
        self._is_over.set()
        self._beating.join()
        state: State = "failed" if isinstance(failed, Exception) else self._end
        self._tell(replace(self._status, state=state, error="" if failed is None else str(failed)))

    def add(self, done: Done) -> None:
        """Report another round."""
        before = self._query
        self._query = replace(before, batch=before.batch + 1, rows=before.rows + done.records)

    def _beat(self) -> None:
        self._tell(self._status)
        while not self._is_over.wait(HEARTBEAT_MS / 1000):
            self._tell(self._status)

    def _tell(self, status: PipelineStatus) -> None:
        self._reporter.tell(replace(status, queries=(self._query,)))
