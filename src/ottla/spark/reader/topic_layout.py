"""Queries of the cluster before a read: partitions, and their start and end offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.consumer.positions import offsets_at
from ottla.client.errors import broker_error
from ottla.core.errors import ConfigError, ErrorCode
from ottla.core.ids import TopicPartition
from ottla.spark.kafka_settings import is_committed_only
from ottla.spark.link import link_to
from ottla.spark.reader.offsets import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.client.blocking.background import Background
    from ottla.client.view import TopicView
    from ottla.spark.reader.offsets import Bound, Offsets
    from ottla.spark.reader.options import Selection, SourceOptions
    from ottla.spark.reader.ranges import OffsetRange

Partitions = dict[TopicPartition, bytes]
"""The partitions, each with the id of its topic."""


class Cluster:
    def __init__(self, link: Background, *, is_committed_only: bool = False) -> None:
        self._link = link
        self._isolation = int(is_committed_only)

    def partitions(self, selection: Selection) -> Partitions:
        """The current partitions of a selection."""
        if selection.pattern is not None:
            views = self._all_topics()
            chosen = [view for view in views if not view.is_internal and selection.matches(view.name)]
        else:
            names = selection.topics or sorted({at.topic for at in selection.partitions})
            chosen = [self._topic(name, view) for name, view in zip(names, self._views(names), strict=True)]
        found = {TopicPartition(view.name, each): view.topic_id for view in chosen for each in view.partitions}
        if missing := sorted(set(selection.partitions) - found.keys()):
            raise broker_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"assign names {', '.join(map(str, missing))}")
        return {at: topic_id for at, topic_id in found.items() if selection.takes(at)}

    def existing(self, selection: Selection) -> Partitions:
        """The partitions that still exist."""
        names = selection.topics or sorted({at.topic for at in selection.partitions})
        views = (
            self._all_topics() if selection.pattern is not None else [v for v in self._views(names) if v is not None]
        )
        return {
            at: view.topic_id
            for view in views
            if view.error is ErrorCode.NONE and not (selection.pattern is not None and view.is_internal)
            for each in view.partitions
            if selection.takes(at := TopicPartition(view.name, each))
        }

    def _all_topics(self) -> list[TopicView]:
        self._link.call(self._link.client.router.refresh(None))
        views = self._link.client.router.view.topics.values()
        return [view for view in views if view.error is ErrorCode.NONE]

    def _views(self, names: Iterable[str]) -> list[TopicView | None]:
        names = list(names)
        router = self._link.client.router
        self._link.call(router.refresh(names))
        return [router.view.topics.get(name) for name in names]

    @staticmethod
    def _topic(name: str, view: TopicView | None) -> TopicView:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if view is None else view.error
        if view is None or code is not ErrorCode.NONE:
            raise broker_error(code, f"topic {name!r}")
        return view

    # Offsets

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._offsets_at(dict.fromkeys(partitions, EARLIEST))

    def divided(self, ranges: list[OffsetRange]) -> list[OffsetRange]:
        """The ranges by where they are read from: here, all from the broker."""
        return ranges

    def live_earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The bounds of the broker's log."""
        return self.earliest(partitions)

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The end offsets of the partitions: the last stable offsets for read_committed."""
        return self._offsets_at(dict.fromkeys(partitions, LATEST))

    def resolve(self, bound: Bound, partitions: Iterable[TopicPartition]) -> Offsets:
        """The offsets of a bound given as an option."""
        wanted = bound.wanted(set(partitions))
        if bound.is_time:
            return self._at_times(bound, wanted)
        special = {at: offset for at, offset in wanted.items() if offset < 0}
        return wanted | self._offsets_at(special)

    def at_time(self, partitions: Iterable[TopicPartition], time_ms: int) -> Offsets:
        """By partition, the first offset with a record at or after the timestamp; the end offset if there is none."""
        found = self._offsets_at(dict.fromkeys(partitions, time_ms))
        return found | self.latest(at for at, offset in found.items() if offset < 0)

    def _at_times(self, bound: Bound, times_ms: Mapping[TopicPartition, int]) -> Offsets:
        found = self._offsets_at(times_ms)
        none_there = sorted(at for at, offset in found.items() if offset < 0)
        if none_there and not bound.falls_back_to_latest:
            raise ConfigError(
                f"{bound.option}: {', '.join(map(str, none_there))} has no record at or after "
                f"{times_ms[none_there[0]]} ms "
                "(set startingOffsetsByTimestampStrategy to latest to begin at its end)"
            )
        return found | self.latest(none_there)

    def _offsets_at(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        if not wanted:
            return {}
        return self._link.call(offsets_at(self._link.client.router, wanted, self._isolation))


def cluster_of(options: SourceOptions) -> Cluster:
    """The cluster of these options, with the archive if there is one."""
    link, committed = link_to(options.kafka), is_committed_only(options.kafka)
    if options.archive is None:
        return Cluster(link, is_committed_only=committed)
    # Only if needed: importing the Parquet reader takes 0.1 s.
    from ottla.spark.archive.history import HistoryCluster

    return HistoryCluster(link, options.archive, is_committed_only=committed)
