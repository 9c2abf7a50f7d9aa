"""A cluster with archived topics: partitions start where the archive does."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from ottla.spark.archive.cover import Contents, contents_of, holes
from ottla.spark.archive.errors import another_topic
from ottla.spark.archive.names import DAY_MS, Span, date_of
from ottla.spark.archive.places import place_of
from ottla.spark.archive.tables import first_offset_since, topic_id_of
from ottla.spark.reader.offsets import EARLIEST, LATEST
from ottla.spark.reader.topic_layout import Cluster
from ottla.wire.declare import NO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ottla.client.blocking.background import Background
    from ottla.core.ids import TopicPartition
    from ottla.spark.archive.cover import Piece
    from ottla.spark.reader.offsets import Offsets
    from ottla.spark.reader.ranges import OffsetRange

_LOOKS: Final = 5
"""Files come and go while small ones are merged, and while the topic is trimmed; a look in between may miss some."""


class HistoryCluster(Cluster):
    def __init__(self, link: Background, location: str, *, is_committed_only: bool = False) -> None:
        super().__init__(link, is_committed_only=is_committed_only)
        self._location = location
        self._known: dict[str, Contents] = {}

    def live_earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return super()._offsets_at(dict.fromkeys(partitions, EARLIEST))

    def _offsets_at(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        found = super()._offsets_at(wanted)
        for at, asked in wanted.items():
            if asked == LATEST:
                continue
            archived = self._contents(at.topic).first(at.partition) if asked == EARLIEST else self._at_time(at, asked)
            if archived is not None:
                found[at] = archived if found[at] < 0 else min(archived, found[at])
        return found

    def divided(self, ranges: list[OffsetRange]) -> list[OffsetRange]:
        """Ranges of the archive first, the rest from the broker."""
        divided: list[OffsetRange] = []
        for _ in range(_LOOKS):
            divided = list(chain.from_iterable(map(self._divided, ranges)))
            live = [each for each in divided if not each.files]
            earliest = self.live_earliest({each.at for each in live})
            if all(each.start >= earliest[each.at] for each in live):
                break
            self._known.clear()
        # Records that neither has are lost; the reader of the ranges reports that.
        return divided

    def _divided(self, whole: OffsetRange) -> Iterator[OffsetRange]:
        span = Span(whole.at.partition, whole.start, whole.end)
        pieces = self._contents(whole.at.topic).within(span)
        if pieces:
            self._check_topic(whole, pieces[-1])
        for each in pieces:
            names = tuple(map(str, each.stretch.files))
            yield replace(whole, start=each.start, end=each.end, files=names)
        for hole in holes(pieces, span):
            yield replace(whole, start=hole.start, end=hole.end)

    def _contents(self, topic: str) -> Contents:
        if topic not in self._known:
            self._known[topic] = contents_of(place_of(self._location, topic).sizes())
        return self._known[topic]

    def _check_topic(self, whole: OffsetRange, newest: Piece) -> None:
        try:
            with place_of(self._location, whole.at.topic).open(str(newest.stretch.files[0])) as file:
                archived = topic_id_of(file)
        except FileNotFoundError:
            return  # merged into another just now, with records of the same topic
        if archived and NO_UUID not in (archived, whole.topic_id) and archived != whole.topic_id:
            raise another_topic(whole.at.topic, self._location)

    def _at_time(self, at: TopicPartition, time_ms: int) -> int | None:
        """The first archived offset of a record as new as this."""
        place, first_date = place_of(self._location, at.topic), date_of(time_ms // DAY_MS)
        for piece in self._contents(at.topic).pieces.get(at.partition, ()):
            found = []
            for file in piece.stretch.files:
                if file.date < first_date:
                    continue
                with place.open(str(file)) as opened:
                    found.append(first_offset_since(opened, time_ms, piece.start))
            if offsets := [offset for offset in found if offset is not None]:
                return min(offsets)
        return None
