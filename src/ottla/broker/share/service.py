"""Share groups of this broker: membership and administration.

A group is written to `__consumer_offsets` before clients see it, like other groups.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from msgspec import structs

from ottla.broker.interfaces.in_process_requests import Refused
from ottla.broker.share.partitions import SharePartitions
from ottla.broker.share.writing import all_safe, append_records
from ottla.broker.topics import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from ottla.core.errors import ApiError, ErrorCode, GroupIdNotFound, NonEmptyGroup, UnknownTopicOrPartition
from ottla.groups.refusals import Refused as TooLarge
from ottla.share.assignor import TopicSize
from ottla.share.formats import StateKey
from ottla.share.group import LEAVING, Caller, HeartbeatResult, ShareGroup, handle_heartbeat, refused
from ottla.share.log import records_between, records_of_end
from ottla.share.sessions import Sessions, TopicIdPartition
from ottla.share.settings import settings_of
from ottla.share.table import ShareGroups
from ottla.storage.catalog.entries import ConfigResource, ConfigScope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.broker.share.coordinator import ShareCoordinator
    from ottla.broker.share.shared import Shared
    from ottla.broker.share.states import States
    from ottla.broker.share.writing import Written
    from ottla.share.config import ShareConfig
    from ottla.share.records import KeyValue
    from ottla.share.sessions import Session
    from ottla.share.settings import GroupSettings
    from ottla.storage.catalog.entries import ResourceConfigs
    from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

_logger: Final = logging.getLogger(__name__)

_SETTINGS_KEPT: Final = 1000


class ShareService:
    def __init__(self, broker: Broker, config: ShareConfig) -> None:
        self.config = config
        self.groups = ShareGroups(broker.groups.rules.table.memory)
        self.sessions = Sessions(config.max_share_sessions)
        self.partitions = SharePartitions(broker, config, self.settings)
        self.states: States = self.partitions.states
        self._broker = broker
        self._settings: dict[str, tuple[ResourceConfigs | None, GroupSettings]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        if broker.cluster is not None:
            self.states.start()

    @property
    def coordinator(self) -> ShareCoordinator | None:
        """The share coordinator of a cluster node."""
        return self.states.coordinator

    def now_ms(self) -> int:
        return self._broker.steady_clock.now_ms()

    # Starting and stopping

    def start(self) -> None:
        """Load the state from the logs. Cluster nodes do so when they become leader of a partition."""
        if self._broker.cluster is None:
            self.states.start()
            self._begin_sessions(self.groups)

    def _begin_sessions(self, groups: Iterable[ShareGroup]) -> None:
        for group in groups:
            timeout_ms = self.settings(group.id).session_timeout_ms
            for member_id in group.members:
                self.groups.heard_of(group.id, member_id, self.now_ms(), timeout_ms)
        self._set_timer()

    def loaded(self, partition: Partition) -> None:
        """Handle a partition of `__consumer_offsets` that this cluster node has loaded."""
        self._begin_sessions(
            [group for group in self.groups if self._broker.groups.partition_of(group.id) is partition]
        )

    def unloaded(self, is_meant: Callable[[str], bool]) -> None:
        """Drop groups that other nodes coordinate now."""
        for group in self.groups:
            if is_meant(group.id):
                for member_id in group.members:
                    self.groups.gone(group.id, member_id)
                self.groups.remove(group.id)

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self.partitions.stop()

    def catch_up(self) -> None:
        """Run what is due after the clock was moved."""
        self._expire()
        self.partitions.expire()

    # Groups

    def settings(self, group_id: str) -> GroupSettings:
        held = self._broker.catalog.view.configs.get(ConfigResource(ConfigScope.GROUP, group_id))
        known = self._settings.get(group_id)
        if known is None or known[0] is not held:
            if len(self._settings) >= _SETTINGS_KEPT:  # of groups that need not exist
                self._settings.clear()
            known = self._settings[group_id] = held, settings_of(self.config, {} if held is None else held.configs)
        return known[1]

    def refusal(self, group_id: str) -> tuple[ErrorCode, str | None]:
        """Why this broker cannot coordinate a share group with this name."""
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID, "the group id is empty"
        if error := self._broker.groups.error_for(group_id):
            return error, None
        if self.groups.get(group_id) is None and self._broker.groups.rules.table.get(group_id) is not None:
            return ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group."
        return ErrorCode.NONE, None

    def check(self, group_id: str) -> None:
        """Raises ApiError unless this share group exists here. In a cluster another node may have it."""
        if self._broker.cluster is not None:
            return
        error, message = self.refusal(group_id)
        if error is not ErrorCode.NONE:
            raise Refused(error, message)
        if self.groups.get(group_id) is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")

    async def heartbeat(self, request: ShareGroupHeartbeatRequest, caller: Caller) -> ShareGroupHeartbeatResponse:
        error, message = self.refusal(request.group_id)
        if error is not ErrorCode.NONE:
            return refused(error, request.member_id, message)
        group = self.groups.get(request.group_id)
        if group is None and request.member_epoch != 0:
            return refused(ErrorCode.GROUP_ID_NOT_FOUND, request.member_id)
        known = None if group is None else group.members.get(request.member_id)
        try:
            held_bytes = 0 if known is None else known.held_bytes
            self._broker.groups.rules.limits.check_share_heartbeat(request, caller.client_id, held_bytes)
        except TooLarge as limited:
            return refused(limited.code, request.member_id, limited.message)
        settings = self.settings(request.group_id)
        try:
            heard = await self._hear(request, caller)
            if heard.response.error_code:
                return heard.response
        except ApiError as failed:
            _logger.error("share group %s: could not write its state: %s", request.group_id, failed)
            return refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, request.member_id, str(failed))
        if request.member_epoch == LEAVING:
            self.groups.gone(request.group_id, request.member_id)
        else:
            self.groups.heard_of(request.group_id, request.member_id, self.now_ms(), settings.session_timeout_ms)
            self._set_timer()
        return structs.replace(heard.response, heartbeat_interval_ms=settings.heartbeat_interval_ms)

    def _topic_size(self, name: str) -> TopicSize | None:
        state = self._broker.topics.by_name.get(name)
        return None if state is None else TopicSize(state.raw_id, len(state.partitions))

    def _alone(self, group_id: str) -> asyncio.Lock:
        """Held during a group change that waits for its states, which may be on other nodes."""
        lock = self._locks.get(group_id)
        if lock is None:
            lock = self._locks[group_id] = asyncio.Lock()
        return lock

    async def _hear(self, request: ShareGroupHeartbeatRequest, caller: Caller) -> HeartbeatResult:
        """Write and apply the new state of the group in one step; returns once it is safe."""
        async with self._alone(request.group_id):
            heard, written = await self._take_over(request, caller)
        await all_safe(written)
        return heard

    async def _take_over(
        self, request: ShareGroupHeartbeatRequest, caller: Caller
    ) -> tuple[HeartbeatResult, list[Written | None]]:
        begun: dict[StateKey, Written | None] = {}
        while True:
            before = self.groups.get(request.group_id) or ShareGroup(id=request.group_id)
            heard = handle_heartbeat(before, request, caller, self._topic_size, self.config.max_size)
            if heard.response.error_code or heard.group is before:
                return heard, []
            missing = {
                StateKey(group_id=before.id, topic_id=topic_id, partition=partition): has_others
                for topic_id, partition, has_others in heard.group.uninitialized(before)
            }
            if missing.keys() <= begun.keys():
                break
            # The group may change after this point.
            begun |= await self._begin({key: has_others for key, has_others in missing.items() if key not in begun})
        placed = self._append(before.id, records_between(before, heard.group))
        self.groups.put(heard.group)
        return heard, [*begun.values(), placed]

    async def _begin(self, missing: Mapping[StateKey, bool]) -> dict[StateKey, Written | None]:
        """Initialize the partitions of a group. A new partition of a topic that the group already reads starts at its
        first record.
        """

        async def begin(key: StateKey, *, has_others: bool) -> Written | None:
            partition = self._broker.topics.partition_by_id(key.topic_id, key.partition)
            return await self.states.initialize(key, partition, at_its_start=has_others)

        if self._broker.cluster is None:
            return {key: await begin(key, has_others=has_others) for key, has_others in missing.items()}
        written = await asyncio.gather(*(begin(key, has_others=has_others) for key, has_others in missing.items()))
        return dict(zip(missing, written, strict=True))

    def _append(self, group_id: str, records: Sequence[KeyValue]) -> Written | None:
        if not records:
            return None
        return append_records(self._broker, self._broker.groups.partition_of(group_id), records)

    async def delete(self, group_id: str) -> ErrorCode:
        try:
            async with self._alone(group_id):
                forgotten = await self.states.forget(self._keys(self.empty_group(group_id)))
                # Look up the current state: this node may have lost and regained the group meanwhile.
                placed = self._append(group_id, records_of_end(self.empty_group(group_id)))
                self.groups.remove(group_id)
            await all_safe([forgotten, placed])
        except ApiError as refused_:
            return refused_.code
        return ErrorCode.NONE

    def _keys(self, group: ShareGroup, topic_id: bytes | None = None) -> list[StateKey]:
        return [
            StateKey(group_id=group.id, topic_id=each, partition=partition)
            for each, one in group.initialized.items()
            if topic_id in (None, each)
            for partition in one.partitions
        ]

    # Offsets for administrators

    def has_consumed(self, group: ShareGroup) -> bool:
        """Whether the group has consumed anything. Until then its offsets are not shown, as in Kafka: they are only the
        start position.
        """
        return self.states.has_consumed(self._keys(group))

    def empty_group(self, group_id: str) -> ShareGroup:
        """The group; raises ApiError if it does not exist, or has members."""
        group = self.groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        if group.members:
            raise NonEmptyGroup(f"Group {group_id} has members.")
        return group

    async def move(self, group_id: str, topic: str, partition: int, offset: int) -> None:
        """Reset a group without members to this offset. A missing group is created."""
        state = self._broker.topics.by_name.get(topic)
        if state is None or not 0 <= partition < len(state.partitions):
            raise UnknownTopicOrPartition(f"unknown partition {topic}-{partition}")
        key = StateKey(group_id=group_id, topic_id=state.raw_id, partition=partition)
        async with self._alone(group_id):
            self._empty_or_new(group_id)
            place = await self.states.move(key, offset)
            before = self._empty_or_new(group_id)
            after = before.reading(state.raw_id, topic, partition)
            placed = self._append(group_id, records_between(before, after))
            self.groups.put(after)
        await all_safe([place, placed])

    def _empty_or_new(self, group_id: str) -> ShareGroup:
        error, message = self.refusal(group_id)
        if error is not ErrorCode.NONE:
            raise Refused(error, message)
        return ShareGroup(id=group_id) if self.groups.get(group_id) is None else self.empty_group(group_id)

    async def forget_topic(self, group_id: str, topic_id: bytes) -> None:
        """Delete the offsets of a topic in a group without members."""
        async with self._alone(group_id):
            forgotten = await self.states.forget(self._keys(self.empty_group(group_id), topic_id))
            group = self.empty_group(group_id)
            placed = self._append(group_id, records_between(group, after := group.forgetting(topic_id)))
            self.groups.put(after)
        await all_safe([forgotten, placed])

    def topic_deleted(self, name: str, topic_id: bytes) -> None:
        if name == SHARE_GROUP_STATE:
            # As with other logs: groups are deleted with it, now and not at the next start.
            self.states.clear()
            for group in self.groups:
                self.groups.put(replace(group, initialized={}))
            return
        if name == CONSUMER_OFFSETS:
            self.groups.clear()
            return
        try:
            self.states.forget_topic(topic_id)
        except ApiError as failed:
            _logger.error("could not delete the share state of a deleted topic: %s", failed)
        for group in self.groups:
            if topic_id in group.initialized:
                try:
                    self._append(group.id, records_between(group, after := group.forgetting(topic_id)))
                    self.groups.put(after)
                except ApiError as failed:
                    _logger.error("share group %s: could not remove a deleted topic: %s", group.id, failed)

    # Partitions and sessions

    async def ready(self, group_id: str, places: Iterable[TopicIdPartition]) -> dict[TopicIdPartition, ApiError]:
        """In a cluster: load the states of partitions that this node leads; returns the errors of those that failed."""
        if self._broker.cluster is None:
            return {}
        wanted = {}
        for at in places:
            state = self._broker.topics.by_id.get(at.topic_id)
            partition = state.partitions[at.partition] if state and 0 <= at.partition < len(state.partitions) else None
            if partition is not None and partition.leads:
                wanted[StateKey(group_id=group_id, topic_id=at.topic_id, partition=at.partition)] = partition
        unready = await self.states.ready(wanted)
        return {TopicIdPartition(key.topic_id, key.partition): error for key, error in unready.items()}

    def shared(self, group_id: str, at: TopicIdPartition) -> Shared:
        """Raises ApiError unless the group reads this partition."""
        partition = self._broker.topics.partition_by_id(at.topic_id, at.partition)
        partition.check_leads()
        key = StateKey(group_id=group_id, topic_id=at.topic_id, partition=at.partition)
        found = self.partitions.find(key, partition)
        if found is None:
            self.states.check(key)
            raise UnknownTopicOrPartition(f"group {group_id} does not read {partition.at}")
        return found

    def close_session(self, session: Session, *, was_delivered: bool) -> None:
        """Release the records that its member has acquired."""
        self.sessions.close(session.key)
        for shared in self.partitions.of_group(session.key.group_id):
            self.partitions.release(shared, session.key.member_id, was_delivered=was_delivered)
        if self._broker.cluster is not None and not self.sessions.has_any_of(session.key.group_id):
            self.states.unused(session.key.group_id)

    def connection_closed(self, connection: object) -> None:
        """Release the locks of a disconnected member; its deliveries count as attempts."""
        for session in self.sessions.lost(connection):
            self.close_session(session, was_delivered=True)

    # Time

    def _set_timer(self) -> None:
        deadline_ms = self.groups.next_deadline_ms()
        if deadline_ms is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        delay_s = max(deadline_ms - self.now_ms(), 0) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._expire)

    def _expire(self) -> None:
        for group_id, member_id in self.groups.silent(self.now_ms()):
            before = self.groups.get(group_id)
            if before is None or member_id not in before.members:
                continue
            _logger.info("member %s of share group %s: session timeout", member_id, group_id)
            after = before.without(member_id, self._topic_size)
            try:
                self._append(group_id, records_between(before, after))
            except ApiError as failed:
                _logger.error("share group %s: could not write its state: %s", group_id, failed)
            self.groups.put(after)
        self._set_timer()
