"""Incremental fetch sessions (KIP-227): a consumer names its partitions once, then only what changes.

A session is a list of partitions in the order in which they are served. One that delivered something goes to the
end, so that a full answer does not always come from the same ones.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.core.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ottla.wire.messages.fetch import FetchPartition, FetchRequest, PartitionData

NO_SESSION: Final = 0
_FINAL_EPOCH: Final = -1
_INITIAL_EPOCH: Final = 0
_HIGHEST_EPOCH: Final = 0x7FFFFFFF


class FetchSessionIdNotFound(ApiError):
    code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND


class InvalidFetchSessionEpoch(ApiError):
    code = ErrorCode.INVALID_FETCH_SESSION_EPOCH


class FetchSessionTopicIdError(ApiError):
    code = ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


class Key(NamedTuple):
    """A partition as the client names it: by topic name, or from version 13 on by topic id."""

    topic: str
    topic_id: bytes
    partition: int


class _Known(NamedTuple):
    """What the client was last told of a partition."""

    high_watermark: int = -1
    log_start_offset: int = -1


class Session:
    def __init__(self, session_id: int, *, is_by_id: bool) -> None:
        self.id = session_id
        self.epoch = 1
        self.is_by_id = is_by_id
        self.wanted: dict[Key, FetchPartition] = {}
        self._known: dict[Key, _Known] = {}

    def update(self, added: Iterable[tuple[Key, FetchPartition]], forgotten: Iterable[Key]) -> None:
        for key in forgotten:
            self.wanted.pop(key, None)
            self._known.pop(key, None)
        for key, partition in added:
            self.wanted[key] = partition

    def advance(self) -> None:
        self.epoch = 1 if self.epoch == _HIGHEST_EPOCH else self.epoch + 1

    def is_news(self, key: Key, data: PartitionData) -> bool:
        """Whether the client has to be told of this."""
        known = self._known.get(key, _Known())
        return (
            bool(data.records)
            or data.error_code != 0
            or data.high_watermark != known.high_watermark
            or data.log_start_offset != known.log_start_offset
        )

    def told(self, key: Key, data: PartitionData) -> None:
        self._known[key] = _Known(data.high_watermark, data.log_start_offset)
        if data.records and key in self.wanted:
            self.wanted[key] = self.wanted.pop(key)
        if data.error_code:
            # Told again until it is mended: the client may have missed it.
            self._known.pop(key)


class Plan(NamedTuple):
    """What one fetch request comes down to."""

    wanted: list[tuple[Key, FetchPartition]]
    session: Session | None = None
    is_incremental: bool = False


class FetchSessions:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sessions: dict[int, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def plan(self, request: FetchRequest, *, is_by_id: bool) -> Plan:
        named = list(_named(request))
        if request.session_epoch in (_FINAL_EPOCH, _INITIAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            if request.session_epoch == _FINAL_EPOCH or not named:
                return Plan(named)
            session = self._create(is_by_id=is_by_id)
            session.update(named, ())
            return Plan(named, session)
        session = self._find(request, is_by_id=is_by_id)
        session.update(named, _forgotten(request))
        session.advance()
        return Plan(list(session.wanted.items()), session, is_incremental=True)

    def _find(self, request: FetchRequest, *, is_by_id: bool) -> Session:
        session = self._sessions.pop(request.session_id, None)
        if session is None:
            raise FetchSessionIdNotFound(f"there is no fetch session {request.session_id}")
        # Put back as the latest used; the longest unused is the first.
        self._sessions[session.id] = session
        if request.session_epoch != session.epoch:
            raise InvalidFetchSessionEpoch(f"session {session.id} is at epoch {session.epoch}")
        if session.is_by_id != is_by_id:
            raise FetchSessionTopicIdError("the session names its topics in another way")
        return session

    def _create(self, *, is_by_id: bool) -> Session:
        while len(self._sessions) >= self._limit:
            self._sessions.pop(next(iter(self._sessions)))
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = secrets.randbelow(_HIGHEST_EPOCH)
        session = self._sessions[session_id] = Session(session_id, is_by_id=is_by_id)
        return session


def _named(request: FetchRequest) -> Iterator[tuple[Key, FetchPartition]]:
    for topic in request.topics:
        for partition in topic.partitions:
            yield Key(topic.topic, topic.topic_id, partition.partition), partition


def _forgotten(request: FetchRequest) -> Iterator[Key]:
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            yield Key(topic.topic, topic.topic_id, index)
