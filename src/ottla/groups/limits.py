"""Size limits of members' requests, and of the memory of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.groups.refusals import Refused
from ottla.groups.sizes import GROUP_BYTES, MEMBER_BYTES, names_bytes, offset_bytes, protocols_bytes, text_bytes

if TYPE_CHECKING:
    from ottla.groups.actions import Caller
    from ottla.groups.table import GroupTable
    from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from ottla.wire.messages.join_group import JoinGroupRequest
    from ottla.wire.messages.offset_commit import OffsetCommitRequest
    from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
    from ottla.wire.messages.sync_group import SyncGroupRequest
    from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest


class Limits:
    """Each check raises Refused before anything is changed."""

    def __init__(self, table: GroupTable) -> None:
        self._table = table
        self._config = table.config
        self._memory = table.memory

    def check_join(self, request: JoinGroupRequest, caller: Caller) -> None:
        self.check_group_id(request.group_id)
        self._check_id("member id", request.member_id)
        self._check_id("group instance id", request.group_instance_id)
        self._check_id("client id", caller.client_id)
        brought = protocols_bytes(request.protocols)
        self._check_size("JoinGroup metadata", brought)
        self._check_growth(request.group_id, request.member_id, request.group_instance_id, MEMBER_BYTES + brought)

    def check_sync(self, request: SyncGroupRequest) -> None:
        # Their size is limited by max.message.bytes of __consumer_offsets.
        self._check_room(sum(len(each.assignment) for each in request.assignments))

    def check_heartbeat(self, request: ConsumerGroupHeartbeatRequest, client_id: str) -> None:
        self._check_id("instance id", request.instance_id)
        self._check_ids(request, client_id)
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            return
        brought = names_bytes(request.subscribed_topic_names or ()) + text_bytes(request.subscribed_topic_regex)
        self._check_size("the subscription", brought, ErrorCode.INVALID_REQUEST)
        self._check_growth(request.group_id, request.member_id, request.instance_id, MEMBER_BYTES + brought)

    def check_share_heartbeat(self, request: ShareGroupHeartbeatRequest, client_id: str, held_bytes: int) -> None:
        """Check a heartbeat; `held_bytes` is the current memory of the member."""
        self._check_ids(request, client_id)
        if request.subscribed_topic_names is not None:
            brought = names_bytes(request.subscribed_topic_names)
            self._check_size("the subscription", brought, ErrorCode.INVALID_REQUEST)
            self._check_room(MEMBER_BYTES + brought - held_bytes)

    def _check_ids(self, request: ConsumerGroupHeartbeatRequest | ShareGroupHeartbeatRequest, client_id: str) -> None:
        self.check_group_id(request.group_id)
        self._check_id("member id", request.member_id)
        self._check_id("rack id", request.rack_id)
        self._check_id("client id", client_id)

    def check_commit(self, request: OffsetCommitRequest | TxnOffsetCommitRequest) -> None:
        self.check_group_id(request.group_id)
        # The exact growth is computed only when it may matter.
        largest = GROUP_BYTES + offset_bytes("", "") + self._config.offset_metadata_max_bytes
        most = self._memory.max_bytes - self._memory.held_bytes
        if sum(len(topic.partitions) for topic in request.topics) * largest <= most:
            return
        growth = 0 if self._table.get(request.group_id) is not None else GROUP_BYTES
        offsets = self._table.offsets(request.group_id)
        for topic in request.topics:
            for part in topic.partitions:
                metadata = part.committed_metadata or ""
                growth += offsets.growth_at(TopicPartition(topic.name, part.partition_index), metadata)
        self._check_room(growth)

    def check_group_id(self, group_id: str) -> None:
        self._check_id("group id", group_id, ErrorCode.INVALID_GROUP_ID)

    def _check_id(self, what: str, given: str | None, error: ErrorCode = ErrorCode.INVALID_REQUEST) -> None:
        most = self._config.max_id_length
        if given is not None and len(given) > most:
            self._refuse(error, f"{what} has {len(given)} characters; groups.max_id_length is {most}")

    def _check_size(self, what: str, size: int, error: ErrorCode = ErrorCode.MESSAGE_TOO_LARGE) -> None:
        most = self._config.max_member_bytes
        if size > most:
            self._refuse(error, f"{what} takes {size} bytes; groups.max_member_bytes is {most}")

    def _check_growth(self, group_id: str, member_id: str, instance_id: str | None, wanted: int) -> None:
        group = self._table.get(group_id)
        if group is None:
            self._check_room(GROUP_BYTES + wanted)
        else:
            self._check_room(wanted - group.member_bytes(member_id, instance_id))

    def _check_room(self, growth: int) -> None:
        memory = self._memory
        if not memory.has_room(growth):
            self._refuse(
                # Clients retry; memory is freed when members leave or offsets expire.
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"groups use {memory.held_bytes} bytes, the request needs {growth} more; "
                f"groups.max_memory_bytes is {memory.max_bytes}",
            )

    def _refuse(self, error: ErrorCode, message: str) -> NoReturn:
        self._memory.refused += 1
        raise Refused(error, message)
