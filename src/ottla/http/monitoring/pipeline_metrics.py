"""Pipelines in `/metrics`: their last reports."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ottla.core.errors import OttlaError
from ottla.http.framework.problems import Problem
from ottla.http.monitoring.openmetrics import gauge
from ottla.http.resources.pipelines import list_pipelines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.http.framework.endpoints import Call
    from ottla.http.monitoring.openmetrics import Family
    from ottla.http.resources.pipelines import Pipeline


async def pipeline_families(call: Call) -> tuple[Family, ...]:
    """The metrics of pipelines; None if their reports cannot be read: other metrics are still served."""
    try:
        found = (await list_pipelines(call)).pipelines
    except (OttlaError, Problem):
        return ()
    return _families(found, call.broker.clock.now_ms())


def _families(pipelines: Sequence[Pipeline], now_ms: int) -> tuple[Family, ...]:
    states = gauge("ottla_pipeline_state", "1 for the state that a pipeline is in.")
    seen = gauge("ottla_pipeline_seen_seconds", "Since the last report of a pipeline.")
    rows = gauge("ottla_pipeline_rows", "Rows that a query read since the pipeline was started.")
    times = gauge("ottla_pipeline_batch_seconds", "Duration of the last micro-batch that had rows.")
    lags = gauge("ottla_pipeline_lag", "Records that a query has not read yet.")
    waits = gauge("ottla_pipeline_lag_seconds", "Since the oldest record that a query has not read was first seen.")
    letters = gauge("ottla_pipeline_dead_letters", "Dead letters of a source since the start.")
    late = gauge("ottla_pipeline_late_rows", "Rows dropped behind the watermark since the start.")
    kept = gauge("ottla_pipeline_state_rows", "Rows in the state of a query.")
    restarts = gauge("ottla_pipeline_restarts", "Restarts of a query after failures since the start.")
    watermarks = gauge("ottla_pipeline_watermark_seconds", "The watermark of a query, as seconds since 1970.")
    for pipeline in pipelines:
        states.add(1, pipeline=pipeline.name, state=pipeline.state)
        seen.add(max(0, now_ms - pipeline.seen_ms) / 1000, pipeline=pipeline.name)
        for query in pipeline.queries:
            labels = {"pipeline": pipeline.name, "query": query.name}
            rows.add(query.rows, **labels)
            times.add(query.batch_ms / 1000, **labels)
            lags.add(query.lag, **labels)
            waits.add(query.lag_seconds, **labels)
            if query.name.endswith("-dead-letters"):
                letters.add(query.dead_letters, **labels)
            late.add(query.late_rows, **labels)
            kept.add(query.state_rows, **labels)
            restarts.add(query.restarts, **labels)
            if (watermark := _seconds(query.watermark)) is not None:
                watermarks.add(watermark, **labels)
    return states, seen, rows, times, lags, waits, letters, late, kept, restarts, watermarks


def _seconds(watermark: str) -> float | None:
    try:
        return datetime.fromisoformat(watermark).timestamp()
    except ValueError:
        return None
