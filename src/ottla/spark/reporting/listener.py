"""Commits the progress of queries to consumer groups from the driver, after every micro-batch.

Only where the driver is a Python process with the JVM beside it. With Spark Connect, and without this listener, the
source itself tells the group that `kafka.group.id` names, when it is asked for more.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError
from pyspark.sql.streaming import StreamingQueryListener

from ottla.core.errors import OttlaError
from ottla.spark.link import link_to
from ottla.spark.reader.offsets import from_tree
from ottla.spark.reader.options import kafka_settings
from ottla.spark.reporting.progress import GroupProgress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

_log: Final = logging.getLogger(__name__)
_STREAM: Final = "StreamingDataSourceV2ScanRelation"


class ProgressListener(StreamingQueryListener):
    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._queries: dict[str, Any] = {}
        self._groups: dict[tuple[str, int], GroupProgress] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        # Kept from the start: a short query is over before its progress is heard of.
        self._queries[str(event.id)] = self._spark.streams.get(str(event.id))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        progress = event.progress
        query_id = str(progress.id)
        try:
            sources = zip(_source_options(self._queries.get(query_id)), progress.sources, strict=False)
            for index, (options, source) in enumerate(sources):
                end = source.endOffset
                if options is not None and end not in (None, "null"):
                    group = options.get("kafka.group.id") or progress.name or f"spark-{query_id}"
                    self._tell((query_id, index), group, options, json.loads(end))
        except (OttlaError, ValueError) as failed:
            _log.warning("query %s: its progress is not committed to a group: %s", progress.name or query_id, failed)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing has changed."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        query_id = str(event.id)
        self._queries.pop(query_id, None)
        self._groups = {source: group for source, group in self._groups.items() if source[0] != query_id}

    def _tell(self, source: tuple[str, int], group: str, options: dict[str, str], end: dict[str, Any]) -> None:
        if source not in self._groups:
            self._groups[source] = GroupProgress(link_to(kafka_settings(options)), group)
        self._groups[source].tell(from_tree(end))


def _source_options(query: object) -> list[dict[str, str] | None]:
    """The options of each source of a query; None for those that are not ours."""
    if query is None or not hasattr(query, "_jsq"):
        return []
    try:
        leaves = query._jsq.streamingQuery().logicalPlan().collectLeaves()  # noqa: SLF001 - Spark tells it nowhere else
    except Py4JError:
        return []  # it failed before it had a plan
    found: list[dict[str, str] | None] = []
    for index in range(leaves.size()):
        leaf = leaves.apply(index)
        kind = leaf.getClass().getSimpleName()
        if not kind.startswith("Streaming"):
            continue  # a table that is joined to it, which Spark reports no progress of
        is_ours = kind == _STREAM and leaf.relation().name() == "ottla"
        found.append(dict(leaf.relation().options()) if is_ours else None)
    return found
