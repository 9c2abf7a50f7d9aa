"""One share group: its members and their assignments. There is no rebalance wait: partitions are shared.

A group is an immutable value. A change creates another one, which replaces the first once it is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.core.errors import ErrorCode
from ottla.share.assignor import NAME, Assignment, TopicSize, assign
from ottla.wire.messages import share_group_describe as describe
from ottla.wire.messages.list_groups import ListedGroup
from ottla.wire.messages.share_group_heartbeat import (
    Assignment as HeartbeatAssignment,
)
from ottla.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

    Topics = Callable[[str], TopicSize | None]

JOINING: Final = 0
LEAVING: Final = -1
TYPE: Final = "share"
PROTOCOL: Final = "share"


_GROUP_BYTES: Final = 2000
_STATE_BYTES: Final = 1000
_MEMBER_BYTES: Final = 1000
_NAME_BYTES: Final = 100
_ASSIGNED_BYTES: Final = 50


class Caller(NamedTuple):
    client_id: str
    client_host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    id: str
    client_id: str
    client_host: str
    rack: str | None = None
    topics: frozenset[str] = frozenset()
    epoch: int = 0
    previous_epoch: int = 0
    target: Assignment = field(default_factory=dict)
    assigned: Assignment = field(default_factory=dict)
    """The assignment that the member was last sent."""

    @property
    def held_bytes(self) -> int:
        assigned = sum(len(each) for each in (*self.target.values(), *self.assigned.values()))
        names = sum(_NAME_BYTES + len(name) for name in self.topics)
        return _MEMBER_BYTES + len(self.id) + len(self.client_id) + names + _ASSIGNED_BYTES * assigned


class Initialized(NamedTuple):
    """A topic with initialized state."""

    name: str
    partitions: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroup:
    id: str
    epoch: int = 0
    assignment_epoch: int = 0
    members: Mapping[str, Member] = field(default_factory=dict)
    initialized: Mapping[bytes, Initialized] = field(default_factory=dict)

    @property
    def state(self) -> str:
        return "Stable" if self.members else "Empty"

    @property
    def held_bytes(self) -> int:
        """An estimate of the memory, including the state of its partitions."""
        states = sum(len(one.partitions) for one in self.initialized.values())
        return _GROUP_BYTES + _STATE_BYTES * states + sum(each.held_bytes for each in self.members.values())

    @property
    def topics(self) -> frozenset[str]:
        return frozenset().union(*(member.topics for member in self.members.values()))

    # ── Changes ──────────────────────────────────────────────────────────────────────────────────────────────

    def with_member(self, member: Member) -> ShareGroup:
        return replace(self, members={**self.members, member.id: member})

    def without(self, member_id: str, topics: Topics) -> ShareGroup:
        left = {each.id: each for each in self.members.values() if each.id != member_id}
        return replace(self, members=left, epoch=self.epoch + 1).with_new_assignment(topics)

    def with_new_assignment(self, topics: Topics) -> ShareGroup:
        """The group with a new assignment; the same object if the assignment is unchanged."""
        known = {name: size for name in self.topics if (size := topics(name)) is not None}
        targets = assign({each.id: each.topics for each in self.members.values()}, known)
        is_same = all(each.target == targets[each.id] for each in self.members.values())
        if is_same and self.assignment_epoch == self.epoch:
            return self
        epoch = self.epoch + 1 if self.assignment_epoch == self.epoch else self.epoch
        members = {each.id: replace(each, target=targets[each.id]) for each in self.members.values()}
        grown = {size.id: Initialized(name, frozenset(range(size.partitions))) for name, size in known.items()}
        return replace(
            self,
            members=members,
            epoch=epoch,
            assignment_epoch=epoch,
            initialized={**self.initialized, **grown},
        )

    def uninitialized(self, before: ShareGroup | None) -> list[tuple[bytes, int, bool]]:
        """Uninitialized partitions, and whether others of the topic are initialized."""
        known = {} if before is None else before.initialized
        return [
            (topic_id, partition, topic_id in known)
            for topic_id, one in self.initialized.items()
            for partition in sorted(one.partitions - (known[topic_id].partitions if topic_id in known else frozenset()))
        ]

    def reading(self, topic_id: bytes, name: str, partition: int) -> ShareGroup:
        """The group with this partition initialized."""
        known = self.initialized.get(topic_id, Initialized(name, frozenset()))
        grown = Initialized(name, known.partitions | {partition})
        return replace(self, initialized={**self.initialized, topic_id: grown}, epoch=max(self.epoch, 1))

    def forgetting(self, topic_id: bytes) -> ShareGroup:
        """The group without the state of a topic."""
        return replace(self, initialized={each: one for each, one in self.initialized.items() if each != topic_id})

    # ── Responses ────────────────────────────────────────────────────────────────────────────────────────────

    def listed(self) -> ListedGroup:
        return ListedGroup(group_id=self.id, protocol_type=PROTOCOL, group_state=self.state, group_type=TYPE)

    def described(self, names: Mapping[bytes, str]) -> describe.DescribedGroup:
        members = tuple(
            describe.Member(
                member_id=each.id,
                rack_id=each.rack,
                member_epoch=each.epoch,
                client_id=each.client_id,
                client_host=each.client_host,
                subscribed_topic_names=tuple(sorted(each.topics)),
                assignment=describe.Assignment(
                    topic_partitions=tuple(
                        describe.TopicPartitions(topic_id=topic_id, topic_name=names[topic_id], partitions=those)
                        for topic_id, those in each.assigned.items()
                        if topic_id in names
                    )
                ),
            )
            for each in self.members.values()
        )
        return describe.DescribedGroup(
            error_code=ErrorCode.NONE,
            group_id=self.id,
            group_state=self.state,
            group_epoch=self.epoch,
            assignment_epoch=self.assignment_epoch,
            assignor_name=NAME,
            members=members,
        )


class HeartbeatResult(NamedTuple):
    """The result of a heartbeat."""

    group: ShareGroup
    response: ShareGroupHeartbeatResponse


def handle_heartbeat(
    group: ShareGroup, request: ShareGroupHeartbeatRequest, caller: Caller, topics: Topics, max_size: int
) -> HeartbeatResult:
    known = group.members.get(request.member_id)
    error = _refusal(group, known, request, max_size)
    if error is not ErrorCode.NONE:
        return HeartbeatResult(group, refused(error, request.member_id))
    if request.member_epoch == LEAVING:
        return HeartbeatResult(
            group.without(request.member_id, topics),
            ShareGroupHeartbeatResponse(
                error_code=ErrorCode.NONE, member_id=request.member_id, member_epoch=LEAVING, heartbeat_interval_ms=0
            ),
        )
    member = _told(known or Member(id=request.member_id, client_id="", client_host=""), request, caller)
    after = group.with_member(member) if member != known else group
    if known is None or known.topics != member.topics:
        after = replace(after, epoch=group.epoch + 1)
    after = after.with_new_assignment(topics)
    member = after.members[member.id]
    is_news = request.member_epoch == JOINING or request.subscribed_topic_names is not None
    if member.epoch != after.assignment_epoch or member.assigned != member.target:
        is_news = True
        member = replace(member, previous_epoch=member.epoch, epoch=after.assignment_epoch, assigned=member.target)
        after = after.with_member(member)
    return HeartbeatResult(after, _response(member, is_news=is_news))


def _refusal(group: ShareGroup, known: Member | None, request: ShareGroupHeartbeatRequest, max_size: int) -> ErrorCode:
    if request.member_epoch == JOINING:
        if known is None and not request.subscribed_topic_names:
            return ErrorCode.INVALID_REQUEST
        if known is None and len(group.members) >= max_size:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        return ErrorCode.NONE
    if known is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if request.member_epoch == LEAVING:
        return ErrorCode.NONE
    if request.member_epoch not in (known.epoch, known.previous_epoch):
        # A member that missed the response with its epoch sends the previous one.
        return ErrorCode.FENCED_MEMBER_EPOCH
    return ErrorCode.NONE


def _told(member: Member, request: ShareGroupHeartbeatRequest, caller: Caller) -> Member:
    topics = request.subscribed_topic_names
    return replace(
        member,
        client_id=caller.client_id,
        client_host=caller.client_host,
        rack=request.rack_id if request.rack_id is not None else member.rack,
        topics=member.topics if topics is None else frozenset(topics),
    )


def _response(member: Member, *, is_news: bool) -> ShareGroupHeartbeatResponse:
    assignment = HeartbeatAssignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic_id, partitions=those) for topic_id, those in member.assigned.items()
        )
    )
    return ShareGroupHeartbeatResponse(
        error_code=ErrorCode.NONE,
        member_id=member.id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=0,
        assignment=assignment if is_news else None,
    )


def refused(error: ErrorCode, member_id: str, message: str | None = None) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        error_code=error, error_message=message, member_id=member_id, member_epoch=0, heartbeat_interval_ms=0
    )
