"""Delivers dead letters in a separate thread, as the queries report bad records."""

from __future__ import annotations

import queue
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ottla.spark.pipelines.dead_letters.delivering import SourceDeadLetters, checkpointed
from ottla.spark.pipelines.dead_letters.rules import Report, lag, report_in, spans_to_read
from ottla.spark.pipelines.sessions import activate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from ottla.core.pipeline_status import QueryStatus
    from ottla.spark.pipelines.definition import Pipeline, Source

_LONGEST_PAUSE_S: Final = 8.0


class DeliveryThread:
    def __init__(self, spark: SparkSession, pipeline: Pipeline, carried: Mapping[str, tuple[str, str]]) -> None:
        """`carried` has, by source, the query that parses its records and that query's checkpoint."""
        self._spark = spark
        self._sources = {name: pipeline.sources[name] for name in carried}
        self._carriers = {name: query for name, (query, _) in carried.items()}
        self._checkpoints = {name: checkpoint for name, (_, checkpoint) in carried.items()}
        self._boxes = {name: SourceDeadLetters(pipeline, source) for name, source in self._sources.items()}
        self._lags: dict[str, int] = {}
        self._work: queue.Queue[tuple[str, Report] | None] = queue.Queue()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ottla dead letters", daemon=True)
        self.failures = 0
        """Since the last success."""
        self.restarts = 0
        self.failure: Exception | None = None
        """The last one."""

    @property
    def is_idle(self) -> bool:
        return self._work.unfinished_tasks == 0

    def begin(self) -> None:
        """Before the queries start."""
        resumed = {name for name, box in self._boxes.items() if box.find_position()}
        if not self._boxes:
            return
        self._thread.start()
        for name in sorted(resumed):
            # A run that was killed may have left dead letters of its last micro-batches undelivered.
            self._work.put((name, Report(start=None, end={})))

    def hear(self, query: str, progress: Mapping[str, Any]) -> None:
        """A progress report of a query's."""
        for name, source in self._sources.items():
            if self._carriers[name] == query and (report := report_in(progress, name, source.topics)) is not None:
                self._work.put((name, report))

    def seen(self, status: QueryStatus) -> QueryStatus:
        """The status of a source's dead letters, as it is now."""
        for name, box in self._boxes.items():
            if box.name == status.name:
                return replace(status, rows=box.delivered, lag=self._lags.get(name, status.lag), restarts=self.restarts)
        return status

    def close(self, timeout_s: float) -> None:
        """Deliver reported dead letters within a time limit; the next run delivers the rest."""
        if not self._thread.is_alive():
            return
        self._work.put(None)
        self._thread.join(timeout_s)
        self._is_over.set()

    def _run(self) -> None:
        activate(self._spark)
        while (task := self._work.get()) is not None:
            name, report = task
            while not self._is_over.is_set():
                try:
                    self._handle(name, report)
                    self.failures = 0
                    break
                except Exception as failed:  # noqa: BLE001 - the pipeline decides how often it is tried again
                    self.failures += 1
                    self.restarts += 1
                    self.failure = failed
                    self._is_over.wait(min(2.0**self.failures, _LONGEST_PAUSE_S))
            self._work.task_done()

    def _handle(self, name: str, report: Report) -> None:
        box = self._boxes[name]
        if not report.end:
            report = replace(report, end=self._checkpointed(name, self._sources[name]))
        ahead = {at: max(end, box.position.get(at, 0)) for at, end in report.end.items()}
        spans = spans_to_read(box.position, report)
        if spans:
            box.deliver(self._spark, spans, ahead)
        elif report.end:
            box.advance(ahead)
        if report.latest is not None:
            self._lags[name] = lag(box.position, report.latest)

    def _checkpointed(self, name: str, source: Source) -> dict[Any, int]:
        return checkpointed(self._spark, self._checkpoints[name], source)
