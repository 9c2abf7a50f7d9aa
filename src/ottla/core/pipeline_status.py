"""Status reports of pipelines, in records of a compacted topic, and their interpretation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

PIPELINES_TOPIC: Final = "__ottla_pipelines"
"""The last record with a pipeline's name as its key counts; its timestamp is set by the broker."""
HEARTBEAT_MS: Final = 5000
_MISSED_BEATS: Final = 3

State = Literal["starting", "running", "stopped", "finished", "failed", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryStatus:
    """One query of a pipeline: a sink, or the dead letters of a source."""

    name: str
    sink: str
    """The kind of sink, and its target."""
    batch: int = -1
    rows: int = 0
    """Read since the pipeline was started."""
    rows_per_second: float = 0.0
    """Of the last non-empty micro-batch."""
    batch_ms: int = 0
    lag: int = 0
    """Unread records."""
    lag_seconds: float = 0.0
    """Since the oldest of them was first seen."""
    watermark: str = ""
    late_rows: int = 0
    """Dropped since the start because they arrived after the watermark."""
    state_rows: int = 0
    """Held by stateful steps."""
    restarts: int = 0
    """After failures, since the start."""
    dead_letters: int = 0
    """Sent since the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStatus:
    name: str
    state: State
    started_ms: int
    file: str = ""
    host: str = ""
    pid: int = 0
    error: str = ""
    queries: tuple[QueryStatus, ...] = ()


def seen_state(state: State, age_ms: int) -> State:
    """A running pipeline that has not reported for long is lost: killed, or disconnected."""
    is_silent = age_ms > _MISSED_BEATS * HEARTBEAT_MS
    return "lost" if state in ("starting", "running") and is_silent else state
