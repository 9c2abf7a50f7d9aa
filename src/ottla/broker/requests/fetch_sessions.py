"""Incremental fetch sessions (KIP-227): a consumer sends its partitions once, then only changes.

A session is a list of partitions in the order in which they are served. A partition that returned data moves to the
end, so that a full response does not always have the same partitions.
"""

from __future__ import annotations

import os
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.core.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ottla.wire.messages.fetch import FetchPartition, FetchRequest, PartitionData

NO_SESSION: Final = 0
MOST_PARTITIONS: Final = 100_000
"""The limit of all sessions together, to bound memory."""
EVICTED_AFTER_S: Final = 120.0
"""min.incremental.fetch.session.eviction.ms of Kafka. If sessions in use were evicted, one consumer more than the
limit would make all of them evict each other's sessions."""
_FINAL_EPOCH: Final = -1
_INITIAL_EPOCH: Final = 0
_HIGHEST_INT32: Final = 0x7FFFFFFF


class FetchSessionIdNotFound(ApiError):
    code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND


class InvalidFetchSessionEpoch(ApiError):
    code = ErrorCode.INVALID_FETCH_SESSION_EPOCH


class FetchSessionTopicIdError(ApiError):
    code = ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


class Key(NamedTuple):
    """A partition as the client identifies it: by topic name, or since version 13 by topic id."""

    topic: str
    topic_id: bytes
    partition: int


class Known(NamedTuple):
    """The last response for a partition in a session."""

    high_watermark: int = -1
    log_start_offset: int = -1


_NOTHING_KNOWN: Final = Known()


def next_epoch(epoch: int) -> int:
    return 1 if epoch == _HIGHEST_INT32 else epoch + 1


class Session:
    def __init__(self, session_id: int, *, is_by_id: bool) -> None:
        self.id = session_id
        self.epoch = 1
        self.is_by_id = is_by_id
        self.last_used_s = 0.0
        self.wanted: dict[Key, FetchPartition] = {}
        self._known: dict[Key, Known] = {}

    def update(self, added: Iterable[tuple[Key, FetchPartition]], forgotten: Iterable[Key]) -> None:
        for key in forgotten:
            self.wanted.pop(key, None)
            self._known.pop(key, None)
        for key, partition in added:
            self.wanted[key] = partition

    def advance(self) -> None:
        self.epoch = next_epoch(self.epoch)

    def known(self, key: Key) -> Known:
        return self._known.get(key, _NOTHING_KNOWN)

    def is_news(self, key: Key, data: PartitionData) -> bool:
        """Whether this result must be in the response."""
        known = self.known(key)
        return (
            bool(data.records)
            or data.error_code != 0
            or data.high_watermark != known.high_watermark
            or data.log_start_offset != known.log_start_offset
            or data.diverging_epoch.epoch >= 0
        )

    def record_sent(self, key: Key, data: PartitionData) -> None:
        if key not in self.wanted:
            return
        if data.error_code:
            # Repeated until it is resolved: the client may have missed the error.
            self._known.pop(key, None)
            return
        self.sent(key, data.high_watermark, data.log_start_offset, bool(data.records))

    def sent(self, key: Key, high_watermark: int, log_start_offset: int, has_records: bool) -> None:  # noqa: FBT001
        """A result without an error was sent for this partition, which is in the session."""
        self._known[key] = Known(high_watermark, log_start_offset)
        if has_records:
            self.wanted[key] = self.wanted.pop(key)


class Plan(NamedTuple):
    """The partitions and session of a fetch request."""

    wanted: list[tuple[Key, FetchPartition]]
    session: Session | None = None
    is_incremental: bool = False


class FetchSessions:
    def __init__(self, limit: int, now_s: Callable[[], float] = monotonic) -> None:
        self._limit = limit
        self._now_s = now_s
        self._sessions: dict[int, Session] = {}  # least recently used first
        self._partitions = 0  # of all sessions

    def __len__(self) -> int:
        return len(self._sessions)

    def plan(self, request: FetchRequest, *, is_by_id: bool) -> Plan:
        named = list(_named(request))
        if request.session_epoch in (_FINAL_EPOCH, _INITIAL_EPOCH):
            if request.session_id != NO_SESSION:
                self._close(request.session_id)
            if request.session_epoch == _FINAL_EPOCH or not named:
                return Plan(named)
            return Plan(named, self._create(named, is_by_id=is_by_id))
        session = self._find(request, is_by_id=is_by_id)
        self._update(session, named, request)
        session.advance()
        return Plan(list(session.wanted.items()), session, is_incremental=True)

    def _find(self, request: FetchRequest, *, is_by_id: bool) -> Session:
        session = self._sessions.get(request.session_id)
        if session is None:
            raise FetchSessionIdNotFound(f"unknown fetch session {request.session_id}")
        if request.session_epoch != session.epoch:
            raise InvalidFetchSessionEpoch(f"session {session.id} is at epoch {session.epoch}")
        if session.is_by_id != is_by_id:
            raise FetchSessionTopicIdError("the session uses topic names and the request topic ids, or vice versa")
        self._touch(session)
        return session

    def peek(self, session_id: int, epoch: int, is_by_id: bool) -> Session | None:  # noqa: FBT001
        """The session, if it is at this epoch and identifies topics in this way."""
        session = self._sessions.get(session_id)
        if session is None or session.epoch != epoch or session.is_by_id != is_by_id:
            return None
        return session

    def use(self, session: Session, changed: Mapping[Key, FetchPartition]) -> None:
        """Begin an incremental fetch with changed partitions, all of which are in the session."""
        self._touch(session)
        session.wanted.update(changed)
        session.advance()

    def _touch(self, session: Session) -> None:
        # Moved to the end: most recently used.
        self._sessions[session.id] = self._sessions.pop(session.id)
        session.last_used_s = self._now_s()

    def _update(self, session: Session, named: list[tuple[Key, FetchPartition]], request: FetchRequest) -> None:
        if not named and not request.forgotten_topics_data:
            return
        before = len(session.wanted)
        session.update(named, _forgotten(request))
        self._partitions += len(session.wanted) - before
        if self._partitions > MOST_PARTITIONS:
            self._close(session.id)
            raise FetchSessionIdNotFound(f"fetch sessions are limited to {MOST_PARTITIONS} partitions")

    def _create(self, named: list[tuple[Key, FetchPartition]], *, is_by_id: bool) -> Session | None:
        """A session with these partitions; None if the cache is full and no session can be evicted."""
        now_s = self._now_s()
        while len(self._sessions) >= self._limit or self._partitions + len(named) > MOST_PARTITIONS:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now_s - oldest.last_used_s < EVICTED_AFTER_S:
                return None
            self._close(oldest.id)
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = int.from_bytes(os.urandom(4), "big") & _HIGHEST_INT32
        session = self._sessions[session_id] = Session(session_id, is_by_id=is_by_id)
        session.last_used_s = now_s
        session.update(named, ())
        self._partitions += len(session.wanted)
        return session

    def _close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partitions -= len(session.wanted)


def _named(request: FetchRequest) -> Iterator[tuple[Key, FetchPartition]]:
    for topic in request.topics:
        for partition in topic.partitions:
            yield Key(topic.topic, topic.topic_id, partition.partition), partition


def _forgotten(request: FetchRequest) -> Iterator[Key]:
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            yield Key(topic.topic, topic.topic_id, index)
