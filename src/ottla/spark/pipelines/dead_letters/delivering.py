"""Delivers the dead letters of an offset range: read and parsed by Spark, sent in transactions with the position."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ottla.client.blocking.producer import Producer
from ottla.client.group.interface import Committed, GroupProgress
from ottla.spark.kafka_settings import client_options
from ottla.spark.link import link_to
from ottla.spark.pipelines.dead_letters.rules import offsets_of, rounds
from ottla.spark.pipelines.frames import StreamReading, dead_letters_query, query_name
from ottla.spark.pipelines.parsing import bad_rows
from ottla.spark.pipelines.preparing import kafka_of
from ottla.spark.reader.offsets import to_tree
from ottla.spark.reader.options import parse_source
from ottla.spark.reader.topic_layout import cluster_of
from ottla.spark.reporting.progress import GroupProgress as ReportedProgress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from ottla.spark.pipelines.dead_letters.rules import Spans
    from ottla.spark.pipelines.definition import Pipeline, Source
    from ottla.spark.reader.offsets import Offsets

_RECORDS_PER_TASK = 2000
"""A task's dead letters are in the driver's memory at once, and may have 900 kB each."""


class SourceDeadLetters:
    """The dead letters of one source. The position is that of a consumer group: all below it is delivered."""

    def __init__(self, pipeline: Pipeline, source: Source) -> None:
        self._pipeline = pipeline
        self._source = source
        self._kafka = kafka_of(pipeline)
        self.name = dead_letters_query(source)
        self.group = query_name(pipeline, self.name)
        self._progress = ReportedProgress(link_to(self._kafka), self.group)
        self.position: Offsets = {}
        self.delivered = 0
        """Since the start."""

    def find_position(self) -> bool:
        """Called before the queries start, so that no record is missed; returns whether an earlier run had a
        position.
        """
        link = link_to(self._kafka)
        given = {
            f"{name}": value for name, value in StreamReading(self._kafka).options(self._source, self.group).items()
        }
        options = parse_source(given, is_stream=True)
        cluster = cluster_of(options)
        committed = link.call(link.client.admin.group_offsets(self.group))
        partitions = cluster.partitions(options.selection)
        known = {at: each.offset for at, each in committed.items() if at in partitions}
        # As the stream does: a new partition of a known topic is read from its start.
        missing = [at for at in partitions if at not in known]
        begun = cluster.earliest(missing) if known else cluster.resolve(options.starting, missing)
        self.position = known | begun
        self._progress.tell(self.position)
        return bool(known)

    def advance(self, end: Offsets) -> None:
        """Advance the position over good records."""
        self.position |= end
        self._progress.tell(self.position)

    def deliver(self, spark: SparkSession, spans: Spans, end: Offsets) -> None:
        """Each round is one transaction: after a failure the rest is delivered by the next call."""
        identity = f"ottla-dead-letters-{self._pipeline.name}.{self._source.name}"
        # The producer ends the transaction that a killed one left open.
        with Producer(self._pipeline.broker, transactional_id=identity, **client_options(self._kafka)) as producer:
            for each in rounds(spans):
                reached = {at: stop for at, (_, stop) in each.items()}
                sent = 0
                with producer.transaction():
                    for row in self._bad(spark, each).toLocalIterator():
                        self._send(producer, row)
                        sent += 1
                    producer.send_offsets(GroupProgress(self.group, {at: Committed(n) for at, n in reached.items()}))
                self.position |= reached
                self.delivered += sent
        self.advance(end)

    def _send(self, producer: Producer[bytes, bytes], row: Row) -> None:
        headers = [(each.key, _bytes(each.value)) for each in row.headers]
        # The end of the transaction confirms the delivery.
        _ = producer.send(self._source.dead_letters, _bytes(row.value), key=_bytes(row.key), headers=headers)

    def _bad(self, spark: SparkSession, spans: Spans) -> DataFrame:
        options = {f"kafka.{name}": value for name, value in self._kafka.items()} | {
            "assign": json.dumps(_partitions(spans)),
            "startingOffsets": json.dumps(to_tree({at: begin for at, (begin, _) in spans.items()})),
            "endingOffsets": json.dumps(to_tree({at: end for at, (_, end) in spans.items()})),
            "includeHeaders": "true",
            "failOnDataLoss": str(self._source.fail_on_data_loss).lower(),
            "maxRecordsPerPartition": str(_RECORDS_PER_TASK),
        }
        if self._source.archive:
            options["archive"] = self._source.archive
        raw = spark.read.format("ottla").options(**options).load()
        return bad_rows(raw, self._source, self._pipeline.name)


def _partitions(spans: Spans) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for at in sorted(spans):
        found.setdefault(at.topic, []).append(at.partition)
    return found


def _bytes(value: bytearray | bytes | None) -> bytes | None:
    return None if value is None else bytes(value)


def checkpointed(spark: SparkSession, checkpoint: str, source: Source) -> Offsets:
    """The offsets of a source in the last completed micro-batch of a query's checkpoint."""
    from pyspark.errors import AnalysisException

    try:
        done = spark.read.format("binaryFile").load(f"{checkpoint}/commits").select("path").collect()
        last = max(int(row.path.rpartition("/")[2]) for row in done)
        [[text]] = spark.read.text(f"{checkpoint}/offsets/{last}", wholetext=True).collect()
    except (AnalysisException, ValueError):
        return {}  # there is none yet
    for line in text.splitlines():
        found = offsets_of(line)
        if found and {at.topic for at in found} <= set(source.topics):
            return found
    return {}
