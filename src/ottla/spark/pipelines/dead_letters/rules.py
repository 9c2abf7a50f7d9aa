"""Which offsets must be read again for dead letters, by a query's report of a micro-batch. Pure rules."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.core.ids import TopicPartition
from ottla.spark.reader.offsets import from_tree

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from ottla.spark.reader.offsets import Offsets

Spans = dict[TopicPartition, tuple[int, int]]
"""From the first offset to the one before the second."""
BLOCK: Final = 1000
"""A query reports bad records by blocks of offsets: a list of all of them might be as long as the topic."""
ROUND: Final = 20_000
"""Offsets whose dead letters are one transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report of a micro-batch for one source."""

    start: Offsets | None
    """None in the first micro-batch of a query."""
    end: Offsets
    rows: int = 0
    """The number of parsed records; 0 if the sink already had the micro-batch, and nothing is known about them."""
    bad_blocks: frozenset[tuple[TopicPartition, int]] = frozenset()
    latest: Offsets | None = None


def metric_name(source: str) -> str:
    return f"ottla_{source}"


def report_in(progress: Mapping[str, Any], source: str, topics: Collection[str]) -> Report | None:
    """The part of Spark's progress report about a source; None if it has none."""
    for each in progress.get("sources") or ():
        end = offsets_of(each.get("endOffset"))
        if not end or not {at.topic for at in end} <= set(topics):
            continue
        metrics = (progress.get("observedMetrics") or {}).get(metric_name(source)) or {}
        return Report(
            start=offsets_of(each.get("startOffset")) or None,
            end=end,
            rows=int(metrics.get("rows") or 0),
            bad_blocks=frozenset(_block(text) for text in metrics.get("blocks") or ()),
            latest=offsets_of(each.get("latestOffset")) or None,
        )
    return None


def _block(text: str) -> tuple[TopicPartition, int]:
    topic, partition, number = text.rsplit("/", 2)
    return TopicPartition(topic, int(partition)), int(number)


def offsets_of(given: object) -> Offsets:
    """Offsets as Spark reports them: JSON values, or their text."""
    try:
        tree: Any = json.loads(given) if isinstance(given, str) else given
        return {at: int(offset) for at, offset in from_tree(tree).items()}
    except (AttributeError, TypeError, ValueError):
        return {}


def spans_to_read(position: Offsets, report: Report) -> Spans:
    """The offsets between the position and the report's end; only blocks with bad records if the report is complete."""
    start = report.start or {}
    spans = {at: (position.get(at, start.get(at, 0)), end) for at, end in report.end.items()}
    is_gapless = report.start is None or all(position.get(at, begun) == begun for at, begun in report.start.items())
    if is_gapless and report.rows > 0:
        spans = {at: _narrowed(at, span, report) for at, span in spans.items()}
    return {at: (begin, end) for at, (begin, end) in spans.items() if begin < end}


def _narrowed(at: TopicPartition, span: tuple[int, int], report: Report) -> tuple[int, int]:
    numbers = [number for place, number in report.bad_blocks if place == at]
    if not numbers:
        return span[1], span[1]
    return max(span[0], min(numbers) * BLOCK), min(span[1], (max(numbers) + 1) * BLOCK)


def rounds(spans: Spans) -> Iterator[Spans]:
    """In pieces of at most ROUND offsets, in order within each partition."""
    left = dict(spans)
    while left:
        each = max(1, ROUND // len(left))
        yield {at: (begin, min(end, begin + each)) for at, (begin, end) in left.items()}
        left = {at: (begin + each, end) for at, (begin, end) in left.items() if begin + each < end}


def lag(position: Offsets, latest: Offsets) -> int:
    return sum(max(0, end - position.get(at, 0)) for at, end in latest.items())
