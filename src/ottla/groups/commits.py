"""Requests about committed offsets. Whether a topic exists and may be read is checked by the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.groups.actions import LimitReached, PersistOffsets
from ottla.groups.offsets import is_cursor, new_value
from ottla.groups.refusals import Refused
from ottla.groups.states import State
from ottla.wire.declare import NO_UUID
from ottla.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.groups.actions import Action
    from ottla.groups.formats import OffsetCommitValue
    from ottla.groups.limits import Limits
    from ottla.groups.table import GroupTable
    from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition
    from ottla.wire.messages.offset_delete import OffsetDeleteRequest
    from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

_FIRST_COMMIT_WITH_GROUP_NOT_FOUND: Final = 9


class Commits:
    def __init__(self, table: GroupTable, limits: Limits) -> None:
        self._table = table
        self._limits = limits
        self._cursor_epochs: dict[tuple[str, TopicPartition], int] = {}

    def commit(
        self, request: OffsetCommitRequest, version: int, now_ms: int
    ) -> tuple[OffsetCommitResponse, list[Action]]:
        """The response to send after the actions. Topic ids have been resolved to names."""
        refusal = self._check_commit(request, version)
        notes: list[Action] = []
        if refusal is ErrorCode.NONE:
            refusal, notes = self._check_room(request)
        if refusal is ErrorCode.NONE and (group := self._table.get(request.group_id)) is not None:
            group.note_commit(request.member_id, now_ms)
        changes: dict[TopicPartition, OffsetCommitValue | None] = {}
        topics = []
        for topic in request.topics:
            results = []
            for part in topic.partitions:
                at = TopicPartition(topic.name, part.partition_index)
                error = refusal or self._check_part(request, topic.topic_id, part)
                error = error or self._check_cursor(request.group_id, at, part.committed_leader_epoch)
                if error is ErrorCode.NONE:
                    value = new_value(part, topic.topic_id, request.retention_time_ms, now_ms)
                    changes[at] = self._taken_over(request.group_id, at, value)
                results.append(OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=error))
            topics.append(
                OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=tuple(results))
            )
        actions: list[Action] = [PersistOffsets(request.group_id, changes)] if changes else notes
        return OffsetCommitResponse(topics=tuple(topics)), actions

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, topic_ids: Mapping[str, bytes], now_ms: int
    ) -> tuple[TxnOffsetCommitResponse, list[Action]]:
        """Like `commit`, for transactional offsets, which take effect when the transaction is committed."""
        refusal = self._check_commit_in_transaction(request)
        notes: list[Action] = []
        if refusal is ErrorCode.NONE:
            refusal, notes = self._check_room(request)
        changes: dict[TopicPartition, OffsetCommitValue | None] = {}
        topics = []
        for topic in request.topics:
            results = []
            for part in topic.partitions:
                error = refusal or self._check_metadata(part.committed_metadata)
                if error is ErrorCode.NONE:
                    at = TopicPartition(topic.name, part.partition_index)
                    changes[at] = new_value(part, topic_ids[topic.name], -1, now_ms)
                results.append(TxnOffsetCommitResponsePartition(partition_index=part.partition_index, error_code=error))
            topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=tuple(results)))
        producer = request.producer_id, request.producer_epoch
        actions: list[Action] = [PersistOffsets(request.group_id, changes, producer)] if changes else notes
        return TxnOffsetCommitResponse(topics=tuple(topics)), actions

    def is_unstable(self, group_id: str, at: TopicPartition) -> bool:
        """Whether an open transaction may change the committed offsets."""
        return self._table.pending.has(group_id, at)

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether the sender may fetch committed offsets."""
        group = self._table.get(group_id)
        return ErrorCode.NONE if group is None else group.check_fetch(member_id, epoch)

    def get(self, group_id: str, at: TopicPartition, topic_id: bytes = NO_UUID) -> OffsetCommitValue | None:
        return self._table.offsets(group_id).get(at.topic, at.partition, topic_id)

    def all(self, group_id: str) -> dict[TopicPartition, OffsetCommitValue]:
        return dict(self._table.offsets(group_id))

    def delete(self, request: OffsetDeleteRequest) -> tuple[OffsetDeleteResponse, list[Action]]:
        """Delete offsets of topics that no member subscribes to."""
        group = self._table.get(request.group_id)
        if group is None:
            return OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND, topics=()), []
        if group.state is not State.EMPTY and not group.uses_consumer_protocol:
            return OffsetDeleteResponse(error_code=ErrorCode.NON_EMPTY_GROUP, topics=()), []
        offsets = self._table.offsets(request.group_id)
        changes: dict[TopicPartition, OffsetCommitValue | None] = {}
        topics = []
        for topic in request.topics:
            is_read = group.is_subscribed_to(topic.name)
            error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_read else ErrorCode.NONE
            numbers = [each.partition_index for each in topic.partitions]
            results = (OffsetDeleteResponsePartition(partition_index=each, error_code=error) for each in numbers)
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=tuple(results)))
            if not is_read:
                known = (each for each in numbers if offsets.get(topic.name, each) is not None)
                changes.update((TopicPartition(topic.name, each), None) for each in known)
        actions: list[Action] = [PersistOffsets(request.group_id, changes)] if changes else []
        return OffsetDeleteResponse(error_code=ErrorCode.NONE, topics=tuple(topics)), actions

    def forget_topics(self, topics: Mapping[str, bytes]) -> list[Action]:
        """Delete the offsets of deleted topics, given by name and id."""
        actions: list[Action] = []
        self._cursor_epochs = {key: epoch for key, epoch in self._cursor_epochs.items() if key[1].topic not in topics}
        for group in self._table:
            offsets = self._table.offsets(group.group_id)
            gone = [at for name, topic_id in topics.items() for at in offsets.in_topic(name, topic_id)]
            gone += [at for at in self._table.pending.partitions(group.group_id) if at.topic in topics]
            if gone:
                actions.append(PersistOffsets(group.group_id, dict.fromkeys(gone)))
        return actions

    def expire(self, now_ms: int) -> list[Action]:
        """Delete expired offsets, and groups that have nothing left."""
        actions: list[Action] = []
        for group in self._table:
            offsets = self._table.offsets(group.group_id)
            unstable = self._table.pending.partitions(group.group_id)
            expired = [at for at in offsets.expired(group, self._table.config, now_ms) if at not in unstable]
            if expired:
                actions.append(PersistOffsets(group.group_id, dict.fromkeys(expired)))
            if group.is_unused and len(expired) == len(offsets) and not unstable:
                actions.append(group.deletion())
        return actions

    def _check_commit(self, request: OffsetCommitRequest, version: int) -> ErrorCode:
        generation = request.generation_id_or_member_epoch
        group = self._table.get(request.group_id)
        if group is not None:
            return group.check_commit(request.member_id, request.group_instance_id, generation, version)
        if generation < 0:
            return ErrorCode.NONE
        is_told = version >= _FIRST_COMMIT_WITH_GROUP_NOT_FOUND
        return ErrorCode.GROUP_ID_NOT_FOUND if is_told else ErrorCode.ILLEGAL_GENERATION

    def _check_part(
        self, request: OffsetCommitRequest, topic_id: bytes, part: OffsetCommitRequestPartition
    ) -> ErrorCode:
        group = self._table.get(request.group_id)
        epoch = request.generation_id_or_member_epoch
        stale = group and group.check_commit_of(request.member_id, epoch, topic_id, part.partition_index)
        return stale or self._check_metadata(part.committed_metadata)

    def _check_cursor(self, group_id: str, at: TopicPartition, epoch: int) -> ErrorCode:
        """Fence cursor commits by leader epoch: a previous owner of the cursor must not reset it with a late commit."""
        if epoch < 0 or not is_cursor(group_id) or epoch >= self._cursor_epoch(group_id, at):
            return ErrorCode.NONE
        return ErrorCode.FENCED_LEADER_EPOCH

    def _cursor_epoch(self, group_id: str, at: TopicPartition) -> int:
        known = self._table.offsets(group_id).get(at.topic, at.partition)
        # Commits that are being appended to the log count as well.
        return max(-1 if known is None else known.leader_epoch, self._cursor_epochs.get((group_id, at), -1))

    def _taken_over(self, group_id: str, at: TopicPartition, value: OffsetCommitValue) -> OffsetCommitValue:
        """The value to store. The first commit of a cursor in a leader epoch fences the previous owner, which may have
        moved the cursor since the new owner read it: so it keeps the cursor, and the new owner reads it again.
        """
        epoch = value.leader_epoch
        if epoch < 0 or not is_cursor(group_id):
            return value
        before = self._cursor_epoch(group_id, at)
        self._cursor_epochs[group_id, at] = epoch
        known = self._table.offsets(group_id).get(at.topic, at.partition, value.topic_id)
        if known is None or epoch <= before:
            return value
        return replace(known, leader_epoch=epoch, commit_timestamp=value.commit_timestamp)

    def _check_commit_in_transaction(self, request: TxnOffsetCommitRequest) -> ErrorCode:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        group = self._table.get(request.group_id)
        if group is None:
            return ErrorCode.NONE if request.generation_id < 0 else ErrorCode.ILLEGAL_GENERATION
        return group.check_commit_in_transaction(request.member_id, request.group_instance_id, request.generation_id)

    def _check_room(self, request: OffsetCommitRequest | TxnOffsetCommitRequest) -> tuple[ErrorCode, list[Action]]:
        try:
            self._limits.check_commit(request)
        except Refused as refused:
            return refused.code, [LimitReached(request.group_id, str(refused))]
        return ErrorCode.NONE, []

    def _check_metadata(self, metadata: str | None) -> ErrorCode:
        is_too_long = len(metadata or "") > self._table.config.offset_metadata_max_bytes
        return ErrorCode.OFFSET_METADATA_TOO_LARGE if is_too_long else ErrorCode.NONE
