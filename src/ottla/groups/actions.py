"""What the rules want done. Whoever asked carries the actions out in their order.

A Persist or PersistOffsets is appended to `__consumer_offsets` before anything after it is answered, so that
nobody learns of a generation or an offset that a crash could take back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct

from ottla.core.errors import ErrorCode
from ottla.groups.formats import GroupKey, OffsetKey
from ottla.groups.records import encode_group, encode_offset
from ottla.wire.messages.join_group import JoinGroupResponse
from ottla.wire.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from ottla.core.ids import TopicPartition
    from ottla.groups.formats import GroupMetadataValue, OffsetCommitValue
    from ottla.groups.records import KeyValue
    from ottla.wire.messages.leave_group import LeaveGroupResponse

    Token: TypeAlias = Hashable
    """Stands for a request that waits for its answer. The caller makes it; the rules hand it back."""


class Caller(Struct, frozen=True):
    """Who sends a request, how it is to be answered, and in which version."""

    token: Token
    version: int
    client_id: str = ""
    client_host: str = ""


class Persist(Struct, frozen=True):
    """Append the group's record; without a value, its tombstone."""

    group_id: str
    value: GroupMetadataValue | None


class PersistOffsets(Struct, frozen=True):
    """Append a record for each of these offsets; without a value, its tombstone."""

    group_id: str
    changes: Mapping[TopicPartition, OffsetCommitValue | None]
    producer: tuple[int, int] | None = None
    """The id and epoch of whoever commits them in a transaction: then they take effect when it is committed."""


class AnswerJoin(Struct, frozen=True):
    token: Token
    response: JoinGroupResponse


class AnswerSync(Struct, frozen=True):
    token: Token
    response: SyncGroupResponse


class AnswerLeave(Struct, frozen=True):
    token: Token
    response: LeaveGroupResponse


class MemberExpired(Struct, frozen=True):
    """Nothing to be done, but worth a line in the log: a member did not do in time what it had to."""

    group_id: str
    member_id: str
    missed: Literal["heartbeat", "join", "rejoin", "sync"]


Action: TypeAlias = Persist | PersistOffsets | AnswerJoin | AnswerSync | AnswerLeave | MemberExpired


def records_of(action: Persist | PersistOffsets) -> list[KeyValue]:
    """What to append."""
    if isinstance(action, Persist):
        return [encode_group(GroupKey(group=action.group_id), action.value)]
    return [
        encode_offset(OffsetKey(group=action.group_id, topic=at.topic, partition=at.partition), value)
        for at, value in action.changes.items()
    ]


def refuse_join(token: Token, error: ErrorCode, member_id: str = "") -> AnswerJoin:
    # An empty protocol name and not null, which JoinGroup can say only from version 7.
    response = JoinGroupResponse(error_code=error, protocol_name="", leader="", member_id=member_id, members=())
    return AnswerJoin(token, response)


def refuse_sync(token: Token, error: ErrorCode) -> AnswerSync:
    return AnswerSync(token, SyncGroupResponse(error_code=error, assignment=b""))


_AFTER_FAILED_APPEND: Final[Mapping[ErrorCode, ErrorCode]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def error_after_failed_append(error: ErrorCode) -> ErrorCode:
    """What members are told instead of their answers when a record of the group could not be appended."""
    return _AFTER_FAILED_APPEND.get(error, error)
