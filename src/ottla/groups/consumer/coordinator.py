"""Requests to consumer groups; ottla.groups.coordinator describes how to use the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.errors import ErrorCode
from ottla.core.pattern_parser import LONGEST
from ottla.core.patterns import InvalidPattern
from ottla.groups.actions import Persist, PersistRecords
from ottla.groups.consumer import describing
from ottla.groups.consumer.conversion import records_of_upgrade
from ottla.groups.consumer.current import JOINING
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.heartbeat import Beat, check, invalid_pattern
from ottla.groups.consumer.refusing import refuse_heartbeat
from ottla.groups.refusals import Refused
from ottla.groups.states import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.groups.actions import Action, Caller
    from ottla.groups.classic import ClassicGroup
    from ottla.groups.limits import Limits
    from ottla.groups.table import GroupTable
    from ottla.wire.messages.consumer_group_describe import DescribedGroup
    from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from ottla.wire.messages.join_group import JoinGroupRequest


class ConsumerGroups:
    def __init__(self, table: GroupTable, limits: Limits) -> None:
        self._table = table
        self._limits = limits

    def heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
        now_ms: int,
        may_see: Callable[[str], bool] = lambda _: True,
    ) -> list[Action]:
        """Handle a heartbeat. `may_see` returns whether the sender's regular expression may match a topic."""
        try:
            check(request, caller.version, self._table.config)
            self._limits.check_heartbeat(request, caller.client_id)
            self._resolve(request)
            group = self._table.get(request.group_id)
            if isinstance(group, ConsumerGroup):
                actions = Beat(group, request, caller, now_ms, may_see).handle()
                if len(actions) > 1:  # otherwise only a deadline was extended
                    self._table.settle(group)
                return actions
            if request.member_epoch == JOINING:
                return self._begin(group, request, caller, now_ms, may_see)
        except Refused as refused:
            return [refuse_heartbeat(caller.token, refused.code, refused.message)]
        kind = "Consumer group" if request.member_epoch > JOINING else "Group"
        text = f"{kind} {request.group_id} not found." if group is None else _not_one(request.group_id)
        return [refuse_heartbeat(caller.token, ErrorCode.GROUP_ID_NOT_FOUND, text)]

    def unresolved(self, request: ConsumerGroupHeartbeatRequest) -> list[str]:
        """Regular expressions of the group and the request that have not been evaluated yet."""
        group = self._table.get(request.group_id)
        patterns = {request.subscribed_topic_regex or ""}
        if isinstance(group, ConsumerGroup) and not group.has_seen_topics:
            patterns |= group.state_of_members.patterns()
        # An expression that is too long is rejected, and not cached.
        known = self._table.environment.matching.is_resolved
        return [each for each in patterns if 0 < len(each) <= LONGEST and not known(each)]

    def _resolve(self, request: ConsumerGroupHeartbeatRequest) -> None:
        """Resolve the topics of a request. Raises Refused."""
        matching = self._table.environment.matching
        for pattern in self.unresolved(request):
            matching.resolve(pattern)
        if not (new := request.subscribed_topic_regex):
            return
        try:
            matching.known(new)
        except InvalidPattern as invalid:
            raise invalid_pattern(new, invalid) from None
        group = self._table.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            used = group.state_of_members.patterns()
            if new not in used and len(used) >= self._table.config.consumer_max_patterns:
                raise Refused(ErrorCode.INVALID_REQUEST, f"The group already has {len(used)} different patterns.")

    def _begin(
        self,
        classic: ClassicGroup | None,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
        now_ms: int,
        may_see: Callable[[str], bool],
    ) -> list[Action]:
        """Create the group, or convert a classic one, when the first member with the consumer protocol joins."""
        environment = self._table.environment
        group = ConsumerGroup(request.group_id, environment)
        is_empty = classic is None or classic.state is State.EMPTY
        before = [] if classic is None or is_empty else records_of_upgrade(classic, environment, now_ms)
        for record in before:
            group.replay(*record)
        group.start(now_ms)
        actions = Beat(group, request, caller, now_ms, may_see).handle()
        joined = [record for action in actions if isinstance(action, PersistRecords) for record in action.records]
        tombstone = Persist(request.group_id, None) if classic is not None and classic.is_stored else None
        persist = PersistRecords(request.group_id, (*before, *joined), becomes=group, classic=tombstone)
        released = [] if classic is None else classic.call_off(ErrorCode.REBALANCE_IN_PROGRESS)
        return [persist, *released, actions[-1]]

    def join_empty(self, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, now_ms: int) -> list[Action]:
        """Convert an empty group to a classic one when a classic member joins."""
        classic = self._table.new_classic(group.group_id, now_ms)
        actions = classic.join(request, caller, now_ms)
        if classic.is_unused:
            return actions
        erased = group.deletion().records
        return [PersistRecords(group.group_id, erased, becomes=classic), *actions]

    def describe(self, group_id: str) -> DescribedGroup:
        group = self._table.get(group_id)
        if isinstance(group, ConsumerGroup):
            return describing.describe(group)
        text = f"Group {group_id} not found." if group is None else _not_one(group_id)
        return describing.not_described(group_id, ErrorCode.GROUP_ID_NOT_FOUND, text)


def _not_one(group_id: str) -> str:
    return f"Group {group_id} is not a consumer group."
