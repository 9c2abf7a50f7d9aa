"""ConsumerGroupHeartbeat: how a member joins, stays, reconciles its assignment, and leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from ottla.core.errors import ErrorCode
from ottla.core.patterns import InvalidPattern, compiled
from ottla.groups.actions import AnswerHeartbeat
from ottla.groups.consumer.current import JOINING, LEAVING, LEAVING_FOR_A_WHILE, Current
from ottla.groups.consumer.formats import MemberValue
from ottla.groups.consumer.update import Update
from ottla.groups.partitions import by_topic, each_partition
from ottla.groups.refusals import Refused
from ottla.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.groups.actions import Action, Caller
    from ottla.groups.config import GroupConfig
    from ottla.groups.consumer.group import ConsumerGroup

_FIRST_WITH_ID_OF_CLIENT: Final = 1
"""From this version on a member generates its id, so that a retried join does not create a second member."""
_NOT_SAID: Final = -1


def check(request: ConsumerGroupHeartbeatRequest, version: int, config: GroupConfig) -> None:
    """Raise Refused for a request that is invalid in any group."""
    empty = next((name for name in ("group_id", "instance_id", "rack_id") if getattr(request, name) == ""), None)
    if empty is not None:
        raise _invalid(f"{_IN_KAFKAS_WORDS[empty]} can't be empty.")
    epoch = request.member_epoch
    if not request.member_id and (epoch != JOINING or version >= _FIRST_WITH_ID_OF_CLIENT):
        raise _invalid("MemberId can't be empty.")
    if epoch < LEAVING_FOR_A_WHILE:
        raise _invalid("MemberEpoch is invalid.")
    if epoch == LEAVING_FOR_A_WHILE and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    if epoch == JOINING:
        _check_join(request)
    if request.server_assignor is not None and request.server_assignor not in config.consumer_assignors:
        supported = ", ".join(config.consumer_assignors)
        raise Refused(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {supported}.",
        )
    if request.subscribed_topic_regex:
        try:
            compiled(request.subscribed_topic_regex)
        except InvalidPattern as invalid:
            raise invalid_pattern(request.subscribed_topic_regex, invalid) from None


def invalid_pattern(pattern: str, invalid: InvalidPattern) -> Refused:
    shown = pattern if len(pattern) <= _LONGEST_SHOWN else pattern[:_LONGEST_SHOWN] + "..."
    text = f"SubscribedTopicRegex `{shown}` is not a valid regular expression: {invalid}."
    return Refused(ErrorCode.INVALID_REGULAR_EXPRESSION, text)


_LONGEST_SHOWN: Final = 200
_IN_KAFKAS_WORDS: Final = {"group_id": "GroupId", "instance_id": "InstanceId", "rack_id": "RackId"}


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == _NOT_SAID:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


class Beat:
    """Applies one heartbeat, which `check` has accepted, to its group."""

    def __init__(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
        now_ms: int,
        may_see: Callable[[str], bool],
    ) -> None:
        self._group = group
        self._state = group.state_of_members
        self._request = request
        self._caller = caller
        self._now_ms = now_ms
        self._may_see = may_see
        self._member_id = request.member_id or group.environment.new_uuid()

    def handle(self) -> list[Action]:
        match self._request.member_epoch:
            case -1:
                return self._leave()
            case -2:
                return self._leave_temporarily()
            case _:
                return self._stay()

    # ── Staying ──────────────────────────────────────────────────────────────────────────────────────────────

    def _stay(self) -> list[Action]:
        group, state, member_id = self._group, self._state, self._member_id
        old_id = self._check_member()
        update = Update(group, self._now_ms, self._may_see)
        if old_id is not None and old_id != member_id:
            update.replace(old_id, member_id)
            group.forget_deadlines(old_id)
        before = state.current(member_id)
        update.subscribe(member_id, self._subscription(state.members.get(member_id)))
        update.refresh()
        update.assign()
        request = self._request
        owned = None if request.topic_partitions is None else each_partition(request.topic_partitions)
        current = update.reconcile(member_id, owned)
        group.keep_alive(member_id, self._now_ms)
        if current != before:
            group.expect_revocation(member_id, current, self._now_ms)
        return [*update.actions(), self._answer(before, current)]

    def _check_member(self) -> str | None:
        """The id of the member, if it is known."""
        group, state, request = self._group, self._state, self._request
        static_id = state.static_member(request.instance_id)
        is_joining = request.member_epoch == JOINING
        is_known = self._member_id in state.members or static_id is not None
        if not is_known and is_joining and len(state.members) >= group.environment.config.consumer_max_size:
            raise Refused(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {len(state.members)} members.",
            )
        if request.instance_id is None:
            known_id = self._member_id if self._member_id in state.members else None
        elif is_joining and static_id != self._member_id:
            if static_id is not None:
                self._check_is_released(static_id)
            return static_id
        else:
            known_id = static_id
            self._check_instance(static_id)
        if known_id is None and not is_joining:
            raise unknown_member(group.group_id, self._member_id)
        if known_id is not None and not is_joining:
            self._check_epoch(state.current(known_id))
        return known_id

    def _check_is_released(self, static_id: str) -> None:
        """The instance id may be taken over if its member has left, or is a classic one."""
        is_classic = self._state.members[static_id].classic_member_metadata is not None
        if not is_classic and self._state.current(static_id).epoch != LEAVING_FOR_A_WHILE:
            raise Refused(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {self._member_id} with instance id {self._request.instance_id} cannot join the group "
                f"because the instance id is owned by {static_id} member.",
            )

    def _check_instance(self, static_id: str | None) -> None:
        instance_id = self._request.instance_id
        if static_id is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if static_id != self._member_id:
            raise Refused(
                ErrorCode.FENCED_INSTANCE_ID,
                f"Static member {self._member_id} with instance id {instance_id} was fenced by member {static_id}.",
            )

    def _check_epoch(self, current: Current) -> None:
        epoch, request = self._request.member_epoch, self._request
        if epoch == current.epoch:
            return
        owned = None if request.topic_partitions is None else each_partition(request.topic_partitions)
        # The response with the member's new epoch may have been lost.
        if epoch < current.epoch and epoch == current.previous_epoch and current.has(owned):
            return
        compared = "smaller" if epoch < current.epoch else "greater"
        raise Refused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a {compared} member epoch ({epoch}) than the one known by the group "
            f"coordinator ({current.epoch}). The member must abandon all its partitions and rejoin.",
        )

    def _subscription(self, before: MemberValue | None) -> MemberValue:
        """The member's new subscription; null fields in the request mean no change."""
        request = self._request
        said = {
            "instance_id": request.instance_id,
            "rack_id": request.rack_id,
            "rebalance_timeout_ms": None if request.rebalance_timeout_ms == _NOT_SAID else request.rebalance_timeout_ms,
            "server_assignor": request.server_assignor,
            "subscribed_topic_names": _sorted(request.subscribed_topic_names),
            "subscribed_topic_regex": request.subscribed_topic_regex,
        }
        if before is None:
            before = MemberValue(client_id="", client_host="", subscribed_topic_names=(), subscribed_topic_regex="")
        return structs.replace(
            before,
            **{name: value for name, value in said.items() if value is not None},
            client_id=self._caller.client_id,
            client_host=self._caller.client_host,
            classic_member_metadata=None,
        )

    def _answer(self, before: Current, current: Current) -> AnswerHeartbeat:
        request = self._request
        has_subscription = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        is_full = (
            request.rebalance_timeout_ms != _NOT_SAID and has_subscription and request.topic_partitions is not None
        )
        is_told = is_full or request.member_epoch == JOINING or before.assigned.keys() != current.assigned.keys()
        topics = (TopicPartitions(topic_id=topic_id, partitions=each) for topic_id, each in by_topic(current.assigned))
        response = ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.NONE,
            member_id=self._member_id,
            member_epoch=current.epoch,
            heartbeat_interval_ms=self._group.timing.heartbeat_interval_ms,
            assignment=Assignment(topic_partitions=tuple(topics)) if is_told else None,
        )
        return AnswerHeartbeat(self._caller.token, response)

    # ── Leaving ──────────────────────────────────────────────────────────────────────────────────────────────

    def _leave(self) -> list[Action]:
        self._check_leaving()
        return [*self._group.let_go([self._member_id], self._now_ms), self._farewell(LEAVING)]

    def _leave_temporarily(self) -> list[Action]:
        """A static member leaves temporarily: its partitions are kept for its session timeout."""
        self._check_leaving()
        update = Update(self._group, self._now_ms)
        current = self._state.current(self._member_id)
        away = structs.replace(current, epoch=LEAVING_FOR_A_WHILE, revoked={})
        update.put_current(self._member_id, away)
        return [*update.actions(), self._farewell(LEAVING_FOR_A_WHILE)]

    def _check_leaving(self) -> None:
        if self._request.instance_id is not None:
            self._check_instance(self._state.static_member(self._request.instance_id))
        elif self._member_id not in self._state.members:
            raise unknown_member(self._group.group_id, self._member_id)

    def _farewell(self, epoch: int) -> AnswerHeartbeat:
        response = ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.NONE, member_id=self._member_id, member_epoch=epoch, heartbeat_interval_ms=0
        )
        return AnswerHeartbeat(self._caller.token, response)


def unknown_member(group_id: str, member_id: str) -> Refused:
    return Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}.")


def _sorted(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(sorted(set(names)))


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)
