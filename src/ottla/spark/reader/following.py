"""Changes of a query's partitions: added, removed, and re-created topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.spark.errors import late_partition, partition_gone, topic_recreated
from ottla.spark.reader.losing import lose
from ottla.wire.declare import NO_UUID

if TYPE_CHECKING:
    from ottla.core.ids import TopicPartition
    from ottla.spark.reader.offsets import Offsets
    from ottla.spark.reader.options import SourceOptions
    from ottla.spark.reader.topic_layout import Cluster, Partitions


class Following:
    def __init__(self, cluster: Cluster, options: SourceOptions) -> None:
        self._cluster = cluster
        self._options = options
        self._topic_ids: dict[str, bytes] = {}
        self._first_offsets: Offsets = {}
        """The start offsets of partitions that were added after the start of the query."""
        self._begun_anew: dict[TopicPartition, tuple[int, int]] = {}
        """Partitions of re-created topics: the query's offset in the old one, and the start of the new one."""
        self.known: Partitions = {}

    def look(self, done: Offsets) -> Partitions:
        """The current partitions, given the query's position; data loss raises an error, or is logged and skipped."""
        self.known = self._cluster.existing(self._options.selection)
        self._report_removed_partitions(done)
        self._report_recreated_topics(done)
        self._add_new_partitions(done)
        self._topic_ids |= {at.topic: topic_id for at, topic_id in self.known.items()}
        return self.known

    def starts(self, done: Offsets) -> Offsets:
        """The next offset of each partition."""
        starts: Offsets = {}
        for at in self.known:
            offset = done.get(at)
            if offset is None:
                starts[at] = self._first_offsets[at]
            else:
                was_at, begins_at = self._begun_anew.get(at, (-1, -1))
                starts[at] = begins_at if offset == was_at else offset
        return starts

    def _report_removed_partitions(self, done: Offsets) -> None:
        if gone := sorted(done.keys() - self.known.keys()):
            lose(partition_gone(", ".join(f"{at} (read up to offset {done[at]})" for at in gone)), self._options)

    def _report_recreated_topics(self, done: Offsets) -> None:
        for topic in sorted({at.topic for at in done.keys() & self.known.keys()}):
            those = sorted(at for at in self.known if at.topic == topic)
            before, now = self._topic_ids.get(topic, NO_UUID), self.known[those[0]]
            if NO_UUID in (before, now) or before == now:
                continue
            read = [at for at in those if at in done]
            lose(topic_recreated(topic, ", ".join(f"up to {done[at]} of {at}" for at in read)), self._options)
            begins = self._cluster.earliest(read)
            self._begun_anew |= {at: (done[at], begins[at]) for at in read}

    def _add_new_partitions(self, done: Offsets) -> None:
        new = [at for at in self.known if at not in done]
        self._first_offsets = self._cluster.earliest(new)
        for at in new:
            if self._first_offsets[at] > 0:
                lose(late_partition(at, self._first_offsets[at]), self._options)
