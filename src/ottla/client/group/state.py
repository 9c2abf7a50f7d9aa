"""The state of a group member, and the effect of each response. Pure.

    unjoined --join--> joined --sync--> stable --heartbeat--> stable
                 ^                        |
                 +---- AGAIN, LOST -------+

`owned` are the consumer's partitions. Before it joins, an eager member revokes everything, and a cooperative one only
partitions to which it no longer subscribes. After the sync, a cooperative member revokes the partitions that it was not
assigned again, and then rejoins (KIP-429).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from ottla.client.errors import broker_error, error_code
from ottla.client.group.assignors.subjects import Assignor, Member
from ottla.core.errors import ErrorCode, ProtocolError
from ottla.wire.consumer_protocol import (
    CONSUMER_PROTOCOL,
    Assignment,
    Subscription,
    by_topic,
    decode_assignment,
    decode_subscription,
    each_partition,
    encode_assignment,
    encode_subscription,
)
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ottla.client.config import ConsumerConfig
    from ottla.core.ids import TopicPartition

NO_GENERATION: Final = -1


class Outcome(Enum):
    GO_ON = auto()
    AGAIN = auto()
    """Rejoin; owned partitions are kept."""
    LOST = auto()
    """The member was removed; its partitions are lost. Join as a new member."""
    LATER = auto()
    """Retry after a delay."""
    ELSEWHERE = auto()
    """Look up the coordinator again, then retry."""


_OUTCOMES: Final[Mapping[ErrorCode, Outcome]] = {
    ErrorCode.NONE: Outcome.GO_ON,
    ErrorCode.MEMBER_ID_REQUIRED: Outcome.AGAIN,
    ErrorCode.REBALANCE_IN_PROGRESS: Outcome.AGAIN,
    ErrorCode.UNKNOWN_MEMBER_ID: Outcome.LOST,
    ErrorCode.ILLEGAL_GENERATION: Outcome.LOST,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Outcome.ELSEWHERE,
    ErrorCode.NOT_COORDINATOR: Outcome.ELSEWHERE,
}


@dataclass(frozen=True, slots=True)
class Change:
    """The result of a new generation; `is_wrong` if it has topics that are no longer subscribed."""

    revoked: frozenset[TopicPartition]
    added: frozenset[TopicPartition]
    is_wrong: bool = False


class MemberState:
    def __init__(self, config: ConsumerConfig, assignors: Sequence[Assignor]) -> None:
        if config.group is None:
            raise ValueError("a member needs a group")
        self.group = config.group
        self.instance_id = config.group_instance_id
        self.member_id = ""
        self.generation = NO_GENERATION
        self.is_leader = False
        self.is_cooperative = all(assignor.is_cooperative for assignor in assignors)
        self.owned: frozenset[TopicPartition] = frozenset()
        self._config = config
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._protocol = ""
        self._since: dict[TopicPartition, int] = {}
        self._assigned: tuple[TopicPartition, ...] | None = None
        self._assigned_in = NO_GENERATION

    @property
    def is_lost(self) -> bool:
        """Whether the owned partitions belong to other members now."""
        return self.generation == NO_GENERATION

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def assignor(self) -> Assignor:
        """The assignor chosen by the group."""
        return self._assignors[self._protocol]

    def owned_since(self, at: TopicPartition) -> int | None:
        """The generation that assigned this partition, if it is owned."""
        return self._since.get(at)

    # Revoking

    def to_give_up(self, is_wanted: Callable[[str], bool]) -> frozenset[TopicPartition]:
        """The partitions to revoke before this member joins."""
        if self.is_lost or not self.is_cooperative:
            return self.owned
        return frozenset(at for at in self.owned if not is_wanted(at.topic))

    def gave_up(self, partitions: Collection[TopicPartition]) -> None:
        self.owned = self.owned.difference(partitions)
        for at in partitions:
            self._since.pop(at, None)

    def took(self, partitions: Collection[TopicPartition]) -> None:
        self.owned = self.owned.union(partitions)
        self._since.update(dict.fromkeys(partitions, self.generation))

    def lose(self, *, forgets_id: bool) -> None:
        self.generation = NO_GENERATION
        self.is_leader = False
        if forgets_id:
            self.member_id = ""

    # Joining

    def join_request(self, topics: Collection[str], reason: str | None = None) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self._config.session_timeout_ms,
            rebalance_timeout_ms=self._config.max_poll_interval_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=CONSUMER_PROTOCOL,
            protocols=tuple(
                JoinGroupRequestProtocol(name=assignor.name, metadata=self._subscription(assignor, topics))
                for assignor in self._assignors.values()
            ),
            reason=reason,
        )

    def _subscription(self, assignor: Assignor, topics: Collection[str]) -> bytes:
        subscription = Subscription(
            topics=tuple(sorted(topics)),
            user_data=assignor.user_data(self._assigned, self._assigned_in),
            owned_partitions=by_topic(self.owned),
            generation_id=self.generation,
            rack_id=self._config.rack or None,
        )
        return encode_subscription(subscription)

    def joined(self, response: JoinGroupResponse) -> Outcome:
        outcome = self._outcome(response.error_code)
        if outcome is Outcome.GO_ON and response.protocol_name not in self._assignors:
            wrong = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            raise broker_error(wrong, f"group {self.group!r} chose the unsupported assignor {response.protocol_name!r}")
        if outcome is Outcome.GO_ON:
            self.generation = response.generation_id
            self.is_leader = response.leader == response.member_id
            self._protocol = response.protocol_name or ""
        if outcome is Outcome.GO_ON or response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        return outcome

    def sync_request(self, shares: Mapping[str, Sequence[TopicPartition]]) -> SyncGroupRequest:
        """The sync request: with all assignments from the leader, empty from others."""
        return SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=CONSUMER_PROTOCOL,
            protocol_name=self._protocol,
            assignments=tuple(
                SyncGroupRequestAssignment(
                    member_id=member,
                    assignment=encode_assignment(Assignment(assigned_partitions=by_topic(share), user_data=b"")),
                )
                for member, share in shares.items()
            ),
        )

    def synced(self, response: SyncGroupResponse, is_wanted: Callable[[str], bool]) -> Outcome | Change:
        outcome = self._outcome(response.error_code)
        if outcome is not Outcome.GO_ON:
            return outcome
        assigned = each_partition(_decoded(response.assignment).assigned_partitions)
        if not all(is_wanted(at.topic) for at in assigned):
            return Change(frozenset(), frozenset(), is_wrong=True)
        self._assigned, self._assigned_in = assigned, self.generation
        return Change(revoked=self.owned.difference(assigned), added=frozenset(assigned) - self.owned)

    # Staying and leaving

    def heartbeat_request(self) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )

    def heartbeat_answered(self, code: int) -> Outcome:
        return self._outcome(code)

    def leave_request(self, reason: str) -> LeaveGroupRequest:
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id, reason=reason)
        return LeaveGroupRequest(group_id=self.group, member_id=self.member_id, members=(identity,))

    def _outcome(self, number: int) -> Outcome:
        code = error_code(number)
        outcome = _OUTCOMES.get(code)
        if outcome is None:
            if not code.is_retriable:
                raise broker_error(number, f"group {self.group!r}")
            return Outcome.LATER
        if outcome is Outcome.LOST:
            # Its member id is still valid if only the generation was wrong.
            self.lose(forgets_id=code is ErrorCode.UNKNOWN_MEMBER_ID)
        return outcome


def members_of(response: JoinGroupResponse) -> list[Member]:
    """All members, for the leader; a malformed subscription counts as empty."""
    found = []
    for each in response.members:
        try:
            subscription = decode_subscription(each.metadata)
        except ProtocolError:
            subscription = Subscription(topics=())
        found.append(
            Member(
                id=each.member_id,
                instance_id=each.group_instance_id,
                topics=frozenset(subscription.topics),
                owned=each_partition(subscription.owned_partitions),
                generation=subscription.generation_id,
                rack=subscription.rack_id or "",
                user_data=subscription.user_data,
            )
        )
    return found


def _decoded(assignment: bytes) -> Assignment:
    # A member omitted by the leader got nothing.
    return decode_assignment(assignment) if assignment else Assignment(assigned_partitions=())
