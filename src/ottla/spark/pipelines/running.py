"""Runs a pipeline: starts, watches, reports and stops its queries together."""

from __future__ import annotations

import os
import socket
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ottla.core.errors import OttlaError
from ottla.core.pipeline_status import HEARTBEAT_MS, PipelineStatus, QueryStatus
from ottla.spark.link import link_to
from ottla.spark.pipelines.dead_letters.delivery_thread import DeliveryThread
from ottla.spark.pipelines.failures import reason_of
from ottla.spark.pipelines.frames import dead_letters_query, query_name
from ottla.spark.pipelines.lag_clock import LagClock
from ottla.spark.pipelines.lags import group_lags
from ottla.spark.pipelines.preparing import kafka_of, make_topics, pin_schemas, with_newer_schemas, with_schemas
from ottla.spark.pipelines.progress import ends, line, new_reports, rows_read, with_progress
from ottla.spark.pipelines.queries import carriers, check_upgrade, keep_fingerprints, planned_queries
from ottla.spark.pipelines.refreshing import Refresher, content_mark
from ottla.spark.pipelines.reporting import Reporter
from ottla.spark.pipelines.sessions import activate
from ottla.spark.pipelines.state_folder import StateFolder
from ottla.spark.pipelines.stores.secrets import redacted, secrets_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from ottla.core.pipeline_status import State
    from ottla.spark.pipelines.definition import Pipeline
    from ottla.spark.pipelines.queries import Query

_LOOK_S: Final = 0.2
_INITIALIZING: Final = "Initializing sources"
_INITIALIZING_S: Final = 10.0
_LONGEST_PAUSE_S: Final = 8.0
"""Before a query is started again; shorter than the silence after which a pipeline counts as lost."""
_END_OF_BATCH_S: Final = 60.0
"""How long a stopping pipeline waits for its micro-batch; after that it is interrupted, and repeated later."""


class PipelineFailed(OttlaError):
    """A query of the pipeline stopped unexpectedly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    available_now: bool = False
    """Stop at the current end of the topics."""
    every_ms: int | None = None
    """Overrides the file."""
    restarts: int = 5
    """How often a failing query is restarted without progress in between."""
    say: Callable[[str], None] = lambda _: None
    """Called with each line of progress."""
    is_over: Callable[[], bool] = lambda: False
    """Polled to find out whether to stop."""


def run_pipeline(spark: SparkSession, asked: Pipeline, options: RunOptions) -> PipelineStatus:
    """Run until the end of the topics, a stop, or a failure; returns the outcome."""
    state = StateFolder(asked.state)
    activate(spark)
    with state.held():
        pipeline = with_schemas(asked, state)
        queries = planned_queries(spark, pipeline)
        for name, changes in check_upgrade(pipeline, queries, state).items():
            for change in changes:
                options.say(f"{name}: {change}")
        make_topics(pipeline)
        pin_schemas(asked, pipeline, state)
        keep_fingerprints(queries, state)
        return _Run(spark, pipeline, queries, state, options).to_the_end()


class _Run:
    def __init__(
        self, spark: SparkSession, pipeline: Pipeline, queries: list[Query], state: StateFolder, options: RunOptions
    ) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._planned = queries
        self._state = state
        self._options = options
        self._secrets = secrets_of(pipeline.sinks.values())
        self._reporter = Reporter(link_to(kafka_of(pipeline)))
        self._running: dict[str, Any] = {}
        self._seen: dict[str, str] = {}
        self._clocks: defaultdict[str, LagClock] = defaultdict(LagClock)
        self._refresher = Refresher(pipeline.tables.values(), time.monotonic(), content_mark)
        self._failures: dict[str, int] = {}
        """By query: failures since its last progress."""
        carried = carriers(pipeline, queries)
        self._delivery = DeliveryThread(spark, pipeline, carried)
        letters = [pipeline.sources[name] for name in carried]
        names = {each.name: each.full_name for each in queries}
        names |= {dead_letters_query(each): query_name(pipeline, dead_letters_query(each)) for each in letters}
        lags = group_lags(link_to(kafka_of(pipeline)), names)
        sinks = {each.name: each.sink for each in queries}
        sinks |= {dead_letters_query(each): f"topic {each.dead_letters}" for each in letters}
        self._status = PipelineStatus(
            name=pipeline.name,
            state="starting",
            started_ms=int(time.time() * 1000),
            file=str(pipeline.file),
            host=socket.gethostname(),
            pid=os.getpid(),
            queries=tuple(QueryStatus(name=name, sink=sink, lag=lags.get(name, 0)) for name, sink in sinks.items()),
        )

    def to_the_end(self) -> PipelineStatus:
        self._reporter.tell(self._status)
        try:
            self._start()
            state: State = self._watch()
        except BaseException as failed:
            is_failure = isinstance(failed, Exception)
            error = self._shown(reason_of(failed)) if is_failure else "interrupted"
            self._finish("failed" if is_failure else "stopped", error)
            raise
        self._finish(state)
        return self._status

    def _start(self) -> None:
        self._delivery.begin()
        for query in self._planned:
            self._start_query(query)
        self._status = replace(self._status, state="running")
        self._reporter.tell(self._status)

    def _start_query(self, query: Query) -> None:
        writer = query.writer.queryName(query.full_name)
        if self._options.available_now:
            writer = writer.trigger(availableNow=True)
        else:
            every_ms = self._options.every_ms or self._pipeline.every_ms
            writer = writer.trigger(processingTime=f"{every_ms} milliseconds")
        started = writer.start()
        self._running[query.name] = started
        # One after the other: each starts a process for every source, and Spark gives it ten seconds, busy or not.
        deadline = time.monotonic() + _INITIALIZING_S
        while started.isActive and started.status["message"] == _INITIALIZING and time.monotonic() < deadline:
            time.sleep(_LOOK_S)

    def _watch(self) -> State:
        reported_at = time.monotonic()
        while True:
            # Checked before the progress is read once more: the last progress of a query must not be missed.
            has_ended = {name: not query.isActive for name, query in self._running.items()}
            self._take_progress()
            self._restart_failed()
            self._check_delivery()
            self._refresh()
            is_done = all(has_ended.values()) and not any(query.isActive for query in self._running.values())
            if is_done and (self._delivery.is_idle or not self._options.available_now):
                return "finished" if self._options.available_now else "stopped"
            if self._state.is_asked_to_stop() or self._options.is_over():
                return "stopped"
            if (time.monotonic() - reported_at) * 1000 >= HEARTBEAT_MS:
                reported_at = time.monotonic()
                self._reporter.tell(self._status)
            time.sleep(_LOOK_S)

    def _take_progress(self) -> None:
        statuses = []
        for status in self._status.queries:
            if status.name not in self._running:
                statuses.append(self._letters_seen(status))
                continue
            for progress in new_reports(self._running[status.name], self._seen.get(status.name, "")):
                self._seen[status.name] = progress["timestamp"]
                status = with_progress(status, progress)  # noqa: PLW2901 - it grows
                self._delivery.hear(status.name, progress)
                self._clocks[status.name].look(*ends(progress), time.monotonic())
                self._failures.pop(status.name, None)
                if rows_read(progress):
                    self._options.say(line(status))
            waiting_s = round(self._clocks[status.name].waiting_s(time.monotonic()), 1)
            statuses.append(replace(status, lag_seconds=waiting_s))
        self._status = replace(self._status, queries=tuple(statuses))

    def _letters_seen(self, status: QueryStatus) -> QueryStatus:
        seen = self._delivery.seen(status)
        if seen.rows > status.rows:
            self._options.say(f"{seen.name}: {seen.rows:,} sent to {seen.sink}")
        return seen

    def _restart_failed(self) -> None:
        """Restart a failed query from its checkpoint, a few times: a worker or the broker may have been lost."""
        for query in self._planned:
            running = self._running[query.name]
            failure = running.exception() if not running.isActive else None
            if failure is None:
                continue
            self._failures[query.name] = self._failures.get(query.name, 0) + 1
            reason = f"{self._pipeline.name}: {query.name} failed: {self._shown(reason_of(failure))}"
            text = f"{failure}\n{getattr(failure, '_stackTrace', None) or ''}"
            stack = self._state.keep_failure(query.name, self._shown(text))
            if self._failures[query.name] > self._options.restarts:
                raise PipelineFailed(f"{reason} (stack trace: {stack})")
            self._options.say(f"{reason}; restarting it")
            self._count_restart(query.name)
            time.sleep(min(2.0 ** self._failures[query.name], _LONGEST_PAUSE_S))
            self._start_query(self._with_newer_schemas(query))

    def _with_newer_schemas(self, failed: Query) -> Query:
        """The query with the columns that registries have now, if its sink's evolution accepts them."""
        pipeline = with_newer_schemas(self._pipeline)
        if pipeline is self._pipeline:
            return failed
        planned = planned_queries(self._spark, pipeline)
        for name, changes in check_upgrade(pipeline, planned, self._state).items():
            for change in changes:
                self._options.say(f"{name}: {change}")
        keep_fingerprints(planned, self._state)
        self._pipeline = pipeline
        renewed = {each.name: each for each in planned}
        self._planned = [renewed[failed.name] if each.name == failed.name else each for each in self._planned]
        return renewed[failed.name]

    def _check_delivery(self) -> None:
        failure = self._delivery.failure
        if failure is None or self._delivery.failures <= self._options.restarts:
            return
        text = self._shown(f"{failure}\n{getattr(failure, '_stackTrace', None) or ''}")
        stack = self._state.keep_failure("dead-letters", text)
        reason = f"{self._pipeline.name}: dead letters could not be delivered: {self._shown(reason_of(failure))}"
        raise PipelineFailed(f"{reason} (stack trace: {stack})")

    def _shown(self, text: str) -> str:
        """Without the passwords and keys of the file, which a library may include in its error."""
        return redacted(text, self._secrets)

    def _refresh(self) -> None:
        """Restart the queries of sinks if a static table has changed: they keep the rows from their planning."""
        changed = [] if self._options.available_now else self._refresher.changed(time.monotonic())
        if not changed:
            return
        try:
            planned = planned_queries(self._spark, self._pipeline)
        except Exception as refused:  # noqa: BLE001 - raised by any table format
            self._options.say(
                f"{', '.join(changed)} changed and could not be read: {reason_of(refused)}; using the old rows"
            )
            return
        self._options.say(f"{', '.join(changed)} changed; restarting the queries")
        self._planned = planned
        for query in planned:
            if query.fingerprint is not None:
                self._wait_for_batch(self._running[query.name], time.monotonic() + _END_OF_BATCH_S)
                self._running[query.name].stop()
                self._start_query(query)

    def _wait_for_batch(self, query: StreamingQuery, deadline: float) -> None:
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
            time.sleep(_LOOK_S)

    def _count_restart(self, name: str) -> None:
        counted = [
            replace(each, restarts=each.restarts + 1) if each.name == name else each for each in self._status.queries
        ]
        self._status = replace(self._status, queries=tuple(counted))

    def _finish(self, state: State, error: str = "") -> None:
        deadline = time.monotonic() + _END_OF_BATCH_S
        for query in self._running.values():
            if state == "stopped":
                self._wait_for_batch(query, deadline)
            query.stop()
        if not error:
            self._take_progress()
        self._delivery.close(0.0 if error else max(_LOOK_S, deadline - time.monotonic()))
        self._status = replace(self._status, queries=tuple(map(self._letters_seen, self._status.queries)))
        self._status = replace(self._status, state=state, error=error)
        self._reporter.tell(self._status)
