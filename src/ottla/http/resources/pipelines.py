"""Data pipelines: their last reports, and which of them are lost.

A pipeline runs in Spark. Every few seconds it writes its status to a topic, which is read here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import msgspec

from ottla.broker.interfaces.fetched import fetch
from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.broker.interfaces.partition_facts import bounds
from ottla.core.pipeline_status import PIPELINES_TOPIC, PipelineStatus, seen_state
from ottla.http.framework.endpoints import Endpoint, HttpState
from ottla.http.framework.models import Struct
from ottla.http.framework.problems import Problem
from ottla.http.records.reading import read_on

if TYPE_CHECKING:
    from ottla.http.framework.endpoints import Call
    from ottla.records.reader import Record


class PipelineQuery(Struct, frozen=True, kw_only=True):
    """One query of a pipeline: a sink, or the dead letters of a source."""

    name: str
    sink: str
    batch: int
    rows: int
    """Rows read since the pipeline was started."""
    rows_per_second: float
    batch_ms: int
    lag: int
    """Records that it has not read yet."""
    lag_seconds: float
    """Time since the oldest unread record was first seen."""
    watermark: str
    late_rows: int
    """Rows dropped since the start because they arrived after the watermark."""
    state_rows: int
    restarts: int
    """Restarts after failures, since the pipeline was started."""
    dead_letters: int
    """Sent since the start; only of the dead letters of a source."""


class Pipeline(Struct, frozen=True, kw_only=True):
    name: str
    state: str
    """starting, running, stopped, finished, failed; or lost, if it should run but has not reported."""
    seen_ms: int
    """The time of its last report."""
    started_ms: int
    file: str
    host: str
    pid: int
    error: str
    rows: int
    rows_per_second: float
    """Of all queries; none if it does not run."""
    lag: int
    """Of the query with the highest lag."""
    queries: list[PipelineQuery]


class PipelineList(Struct, frozen=True, kw_only=True):
    pipelines: list[Pipeline]


class _Reports:
    """The last report of each pipeline, cached: only new records are read."""

    def __init__(self) -> None:
        self._topic_id = b""
        self._next_offset = 0
        self._latest: dict[bytes, tuple[PipelineStatus, int]] = {}

    async def look(self, call: Call) -> list[Pipeline]:
        topic = call.broker.topics.by_name.get(PIPELINES_TOPIC)
        if topic is None:
            return []
        [(start, end)] = (await bounds(call.broker, topic.partitions[:1])).values()
        if self._topic_id != topic.raw_id or self._next_offset > end:
            self._topic_id, self._next_offset, self._latest = topic.raw_id, 0, {}
        at = max(self._next_offset, start)
        # Fetched even without new records: users without permission must not get cached data.
        [data] = await fetch(call, PIPELINES_TOPIC, {0: at}, max_bytes=1)
        raise_refusal(data.error_code)
        async for piece in read_on(call, PIPELINES_TOPIC, 0, at, end):
            for record in piece.records:
                self._take(record)
            self._next_offset = piece.next_offset
        now_ms = call.broker.clock.now_ms()
        return [_shown(status, seen_ms, now_ms) for _, (status, seen_ms) in sorted(self._latest.items())]

    def _take(self, record: Record) -> None:
        key = bytes(record.key or b"")
        if record.value is None:
            self._latest.pop(key, None)
            return
        try:
            self._latest[key] = (msgspec.json.decode(record.value, type=PipelineStatus), record.timestamp)
        except msgspec.DecodeError:
            return  # not a report


_reports: Final[WeakKeyDictionary[HttpState, _Reports]] = WeakKeyDictionary()


async def list_pipelines(call: Call) -> PipelineList:
    return PipelineList(pipelines=await _reports.setdefault(call.http_state, _Reports()).look(call))


async def show_pipeline(call: Call) -> Pipeline:
    name = call.path("name")
    for pipeline in (await list_pipelines(call)).pipelines:
        if pipeline.name == name:
            return pipeline
    raise Problem(404, f"no pipeline {name!r} has reported", hint="GET /v1/pipelines lists the pipelines.")


def _shown(status: PipelineStatus, seen_ms: int, now_ms: int) -> Pipeline:
    state = seen_state(status.state, now_ms - seen_ms)
    return Pipeline(
        name=status.name,
        state=state,
        seen_ms=seen_ms,
        started_ms=status.started_ms,
        file=status.file,
        host=status.host,
        pid=status.pid,
        error=status.error,
        rows=sum(query.rows for query in status.queries),
        rows_per_second=sum(query.rows_per_second for query in status.queries) if state == "running" else 0.0,
        lag=max((query.lag for query in status.queries), default=0),
        queries=[msgspec.convert(query, PipelineQuery, from_attributes=True) for query in status.queries],
    )


ENDPOINTS: Final = (
    Endpoint("GET", "/v1/pipelines", list_pipelines, "All data pipelines that have reported", answer=PipelineList),
    Endpoint("GET", "/v1/pipelines/{name}", show_pipeline, "One pipeline: state, rates and lag", answer=Pipeline),
)
