"""The actions that the rules return. The caller carries them out in order.

Records are appended to `__consumer_offsets` before anything after them is answered, so that clients never see a
generation or an offset that a crash could undo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct

from ottla.core.errors import ErrorCode
from ottla.groups.formats import GroupKey, OffsetKey
from ottla.groups.records import KeyValue, encode_group, encode_offset
from ottla.wire.messages.join_group import JoinGroupResponse
from ottla.wire.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from ottla.core.ids import TopicPartition
    from ottla.groups.consumer.records import Record
    from ottla.groups.formats import GroupMetadataValue, OffsetCommitValue
    from ottla.groups.group import Group
    from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
    from ottla.wire.messages.leave_group import LeaveGroupResponse

    Token: TypeAlias = Hashable
    """Represents a pending request. The caller creates it; the rules return it."""


class Caller(Struct, frozen=True):
    """The sender of a request, with its token and the request's version."""

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
    """The producer id and epoch of a transactional commit: it takes effect when the transaction is committed."""


class PersistRecords(Struct, frozen=True):
    """Append these records of a consumer group in one batch. The rules have already applied them."""

    group_id: str
    records: tuple[Record, ...]
    replaced: tuple[Record, ...] = ()
    """The previous value of each key, in the same order, which is restored if the append fails."""
    becomes: Group | None = None
    """The group after the records are appended, if its type changes."""
    classic: Persist | None = None
    """The record of the classic group that is replaced, or created."""
    is_end: bool = False
    """Whether only the group's offsets are left."""


class AnswerHeartbeat(Struct, frozen=True):
    """The response to a member of a consumer group."""

    token: Token
    response: ConsumerGroupHeartbeatResponse


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
    """A member timed out; only logged."""

    group_id: str
    member_id: str
    missed: Literal["heartbeat", "join", "rejoin", "sync", "revocation"]


class LimitReached(Struct, frozen=True):
    """A request was rejected because of its size; only logged."""

    group_id: str
    message: str


Written: TypeAlias = Persist | PersistOffsets | PersistRecords
Answer: TypeAlias = AnswerJoin | AnswerSync | AnswerLeave | AnswerHeartbeat
Action: TypeAlias = Written | Answer | MemberExpired | LimitReached


def records_of(action: Written) -> list[KeyValue]:
    """The records to append."""
    if isinstance(action, Persist):
        return [encode_group(GroupKey(group=action.group_id), action.value)]
    if isinstance(action, PersistRecords):
        return _records_of_consumer_group(action)
    return [
        encode_offset(OffsetKey(group=action.group_id, topic=at.topic, partition=at.partition), value)
        for at, value in action.changes.items()
    ]


def _records_of_consumer_group(action: PersistRecords) -> list[KeyValue]:
    from ottla.groups.consumer.records import encode  # imported lazily

    records = [KeyValue(*encode(record)) for record in action.records]
    if action.classic is None:
        return records
    # The old group's tombstone comes before the new group's records, or replay would apply it to the new one.
    classic = records_of(action.classic)
    return [*classic, *records] if action.classic.value is None else [*records, *classic]


def refuse_join(token: Token, error: ErrorCode, member_id: str = "") -> AnswerJoin:
    # An empty protocol name, not null, which JoinGroup supports only from version 7.
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
    """The error responses for a record of the group that could not be appended."""
    return _AFTER_FAILED_APPEND.get(error, error)
