"""Converts Spark's progress reports to a pipeline's status. Pure rules."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from ottla.core.pipeline_status import QueryStatus

    class Report(Protocol):
        """A progress report of Spark."""

        @property
        def json(self) -> str: ...

    class Query(Protocol):
        """A streaming query of Spark."""

        @property
        def lastProgress(self) -> Report | None: ...  # noqa: N802 - Spark's name
        @property
        def recentProgress(self) -> Sequence[Report]: ...  # noqa: N802 - Spark's name


def with_progress(status: QueryStatus, progress: Mapping[str, Any]) -> QueryStatus:
    """The status after one more of Spark's progress reports."""
    rows = rows_read(progress)
    operators = progress.get("stateOperators") or ()
    changed = replace(
        status,
        batch=int(progress.get("batchId", status.batch)),
        rows=status.rows + rows,
        lag=sum(_lag(source) for source in progress.get("sources") or ()),
        watermark=_watermark(progress) or status.watermark,
        late_rows=status.late_rows + sum(int(each.get("numRowsDroppedByWatermark") or 0) for each in operators),
        state_rows=sum(int(each.get("numRowsTotal") or 0) for each in operators),
    )
    if rows == 0:
        return changed
    batch_ms = int((progress.get("durationMs") or {}).get("triggerExecution") or 0)
    return replace(changed, batch_ms=batch_ms, rows_per_second=round(rows * 1000 / batch_ms, 1) if batch_ms else 0.0)


def new_reports(query: Query, seen: str) -> list[dict[str, Any]]:
    """The reports after the one with this timestamp. All of them are read only if the last one is new."""
    last = query.lastProgress
    if last is None or _tree(last)["timestamp"] <= seen:
        return []
    return [each for each in map(_tree, query.recentProgress) if each["timestamp"] > seen]


def _tree(report: Report) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(report.json)
    return tree


def rows_read(progress: Mapping[str, Any]) -> int:
    """The sum over all sources, which Spark Connect does not compute."""
    return sum(int(source.get("numInputRows") or 0) for source in progress.get("sources") or ())


def _watermark(progress: Mapping[str, Any]) -> str:
    """Empty if there is none, for which Spark reports 1970."""
    text = str((progress.get("eventTime") or {}).get("watermark") or "")
    return "" if text.startswith("1970-01-01T00:00:00") else text


def ends(progress: Mapping[str, Any]) -> tuple[int, int]:
    """The sums of the offsets reached and of the end offsets at that time."""
    position = end = 0
    for source in progress.get("sources") or ():
        read, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        position += sum(read.values())
        end += sum(max(offset, latest.get(at, 0)) for at, offset in read.items())
    return position, end


def _lag(source: Mapping[str, Any]) -> int:
    end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
    return sum(max(0, offset - end.get(at, 0)) for at, offset in latest.items() if at in end)


def _offsets(given: object) -> dict[tuple[str, str], int]:
    """Offsets as Spark reports them: JSON values, or their text."""
    try:
        tree: Any = json.loads(given) if isinstance(given, str) else given
        return {(topic, partition): int(each) for topic, by in tree.items() for partition, each in by.items()}
    except (AttributeError, TypeError, ValueError):
        return {}


def line(status: QueryStatus) -> str:
    """A line for the terminal."""
    parts = [
        f"{status.name}: batch {status.batch}",
        f"{status.rows:,} row{'' if status.rows == 1 else 's'} read",
        f"{status.rows_per_second:,.0f} rows/s",
        f"lag {status.lag:,}",
    ]
    if status.watermark:
        parts.append(f"watermark {status.watermark}")
    if status.late_rows:
        parts.append(f"{status.late_rows:,} late")
    return ", ".join(parts)
