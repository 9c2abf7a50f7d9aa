"""Sample records as a DataFrame, instead of a topic."""

from __future__ import annotations

import itertools
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from ottla.spark.reader.rows import spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from ottla.spark.pipelines.cases.definition import SampleRecord
    from ottla.spark.pipelines.definition import Source

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SampleReading:
    """Reads the records of a test case, as a backfill reads those of a topic."""

    is_stream = False

    def __init__(self, records: Mapping[str, Sequence[SampleRecord]]) -> None:
        self._records = records

    def load(self, spark: SparkSession, source: Source, group: str) -> DataFrame:  # noqa: ARG002 - has no group
        rows = list(_rows(self._records.get(source.name, ()), source.topics[0]))
        return spark.createDataFrame(rows, spark_schema(with_headers=True))


def _rows(records: Sequence[SampleRecord], topic: str) -> Iterator[tuple[Any, ...]]:
    offsets: defaultdict[tuple[str, int], Iterator[int]] = defaultdict(itertools.count)
    for record in records:
        name = record.topic or topic
        yield (
            record.key,
            record.value,
            name,
            record.partition,
            next(offsets[name, record.partition]),
            _EPOCH + timedelta(milliseconds=record.timestamp_ms),
            0,
            list(record.headers),
        )
