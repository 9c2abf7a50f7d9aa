"""Share sessions: the partitions that a member fetches, so that each request only contains changes (KIP-932).

Requests of a session are numbered: 0 opens it, -1 closes it, and wrong epochs are rejected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.core.errors import InvalidRequest, InvalidShareSessionEpoch, ShareSessionLimitReached, ShareSessionNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable

OPENING: Final = 0
CLOSING: Final = -1
_HIGHEST_EPOCH: Final = (1 << 31) - 1


class SessionKey(NamedTuple):
    group_id: str
    member_id: str


class TopicIdPartition(NamedTuple):
    topic_id: bytes
    partition: int


class Session:
    __slots__ = ("epoch", "key", "owner", "partitions")

    def __init__(self, key: SessionKey, owner: object) -> None:
        self.key = key
        self.owner = owner
        """The connection: acquired records are released when it is lost."""
        self.epoch = 1
        """The epoch of the next request."""
        self.partitions: dict[TopicIdPartition, None] = {}
        """The partitions in fetch order; a partition that returned records moves to the end."""

    def update(self, added: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]) -> None:
        for at in added:
            self.partitions.setdefault(at)
        for at in forgotten:
            self.partitions.pop(at, None)

    def served(self, at: TopicIdPartition) -> None:
        """Move the partition to the end, after it was served."""
        if at in self.partitions:
            del self.partitions[at]
            self.partitions[at] = None


class Sessions:
    def __init__(self, most: int) -> None:
        self._most = most
        self._by_key: dict[SessionKey, Session] = {}
        self._by_owner: dict[object, set[SessionKey]] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def fetching(self, key: SessionKey, epoch: int, owner: object) -> Session:
        """The session of a ShareFetch; a closing one exists until `close`."""
        if epoch == OPENING:
            self.close(key)
            if len(self._by_key) >= self._most:
                raise ShareSessionLimitReached(f"the limit of {self._most} share sessions is reached")
            session = self._by_key[key] = Session(key, owner)
            self._by_owner.setdefault(owner, set()).add(key)
            return session
        return self._next(key, epoch)

    def acknowledging(self, key: SessionKey, epoch: int) -> Session:
        if epoch == OPENING:
            raise InvalidShareSessionEpoch("the first request of a share session must not contain acknowledgements")
        return self._next(key, epoch)

    def _next(self, key: SessionKey, epoch: int) -> Session:
        session = self._by_key.get(key)
        if session is None:
            raise ShareSessionNotFound("unknown share session")
        if epoch == CLOSING:
            return session
        if epoch != session.epoch:
            raise InvalidShareSessionEpoch(f"share session epoch is {epoch}, expected {session.epoch}")
        session.epoch = 1 if epoch == _HIGHEST_EPOCH else epoch + 1
        return session

    def close(self, key: SessionKey) -> None:
        session = self._by_key.pop(key, None)
        if session is not None:
            keys = self._by_owner[session.owner]
            keys.discard(key)
            if not keys:
                del self._by_owner[session.owner]

    def has_any_of(self, group_id: str) -> bool:
        return any(key.group_id == group_id for key in self._by_key)

    def lost(self, owner: object) -> list[Session]:
        """Close the sessions of a closed connection."""
        found = [self._by_key[key] for key in self._by_owner.get(owner, ())]
        for session in found:
            self.close(session.key)
        return found


def session_key(group_id: str | None, member_id: str | None) -> SessionKey:
    if not group_id or not member_id:
        raise InvalidRequest("a share session needs a group id and a member id")
    return SessionKey(group_id, member_id)
