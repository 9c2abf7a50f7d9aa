"""A group with one-line operations, and its expected actions.

A request's token is the name of its sender. The n-th member id ends in n, so the first three members are ann-1, bob-2
and cyd-3.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from ottla.core.errors import ErrorCode
from ottla.groups.actions import (
    Action,
    AnswerJoin,
    AnswerLeave,
    AnswerSync,
    Caller,
    Persist,
    refuse_join,
    refuse_sync,
)
from ottla.groups.classic import ClassicGroup
from ottla.groups.config import GroupConfig
from ottla.groups.consumer.environment import Environment, Timing
from ottla.groups.consumer.matching import Matching
from ottla.groups.formats import GroupMetadataValue, MemberMetadata
from ottla.groups.topic_view import TopicInfo
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

NO_TOPICS: Mapping[str, int] = {}
SESSION_MS = 10_000
REBALANCE_MS = 60_000
NEW_MEMBER_MS = GroupConfig().new_member_join_timeout_ms
HOST = "/127.0.0.1"
ANN, BOB, CYD = "ann-1", "bob-2", "cyd-3"
TOPIC_READ = "read"


def subscription(*topics: str) -> bytes:
    """A consumer's subscription: version 1, the topics, no user data, no owned partitions."""
    names = b"".join(len(topic.encode()).to_bytes(2) + topic.encode() for topic in topics)
    return b"\x00\x01" + len(topics).to_bytes(4) + names + b"\xff\xff\xff\xff" + bytes(4)


READS = subscription(TOPIC_READ)


def uuids() -> Callable[[], str]:
    numbers = count(1)
    return lambda: str(next(numbers))


class Topics:
    """A mutable set of topics."""

    def __init__(self, partitions: Mapping[str, int] = NO_TOPICS) -> None:
        self.version = 0
        self._by_name: dict[str, TopicInfo] = {}
        for name, number in partitions.items():
            self.put(name, number)

    def put(
        self, name: str, partitions: int, generation: int = 0, racks: tuple[tuple[str, ...], ...] = ()
    ) -> TopicInfo:
        """Create a topic, make it larger or move it; another generation of it has another id."""
        self.version += 1
        topic_id = f"{generation}{name}".encode().ljust(16, b".")[:16]
        info = self._by_name[name] = TopicInfo(topic_id, name, partitions, racks)
        return info

    def delete(self, name: str) -> None:
        self.version += 1
        del self._by_name[name]

    def by_name(self, name: str) -> TopicInfo | None:
        return self._by_name.get(name)

    def by_id(self, topic_id: bytes) -> TopicInfo | None:
        return next((info for info in self._by_name.values() if info.id == topic_id), None)

    def names(self) -> Iterable[str]:
        return self._by_name


def environment(config: GroupConfig | None = None, topics: Topics | None = None) -> Environment:
    config = config or GroupConfig()
    timing = Timing(config.consumer_session_timeout_ms, config.consumer_heartbeat_interval_ms)
    topics = topics or Topics()
    return Environment(config, topics, uuids(), lambda _: timing, Matching(topics))


def protocols(*names: str, metadata: bytes = READS) -> tuple[JoinGroupRequestProtocol, ...]:
    return tuple(JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names)


def join_request(member_id: str = "", *, group_id: str = "g", **fields: Any) -> JoinGroupRequest:
    defaults: dict[str, Any] = {
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
        "protocol_type": "consumer",
        "protocols": protocols("range"),
    }
    return JoinGroupRequest(group_id=group_id, member_id=member_id, **{**defaults, **fields})


def sync_request(member_id: str, generation: int, **fields: Any) -> SyncGroupRequest:
    given: Mapping[str, bytes] = fields.pop("assignments", {})
    assignments = tuple(SyncGroupRequestAssignment(member_id=who, assignment=what) for who, what in given.items())
    return SyncGroupRequest(
        group_id="g", generation_id=generation, member_id=member_id, assignments=assignments, **fields
    )


class Room:
    """One group, and requests of its members."""

    def __init__(self, group: ClassicGroup | None = None, **settings: int) -> None:
        config = GroupConfig(min_session_timeout_ms=1000, **settings)
        self.group = group or ClassicGroup("g", config, uuids(), 0)

    def join(self, who: str, member_id: str = "", *, now: int = 0, version: int = 3, **fields: Any) -> list[Action]:
        caller = Caller(fields.pop("token", who), version, who, HOST)
        return self.group.join(join_request(member_id, **fields), caller, now)

    def sync(self, who: str, member_id: str, generation: int, *, now: int = 0, **fields: Any) -> list[Action]:
        return self.group.sync(sync_request(member_id, generation, **fields), who, now)

    def heartbeat(self, member_id: str, generation: int, *, now: int = 0, instance: str | None = None) -> ErrorCode:
        request = HeartbeatRequest(
            group_id="g", generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        return self.group.heartbeat(request, now)

    def leave(self, *members: MemberIdentity, now: int = 0) -> list[Action]:
        request = LeaveGroupRequest(group_id="g", members=members)
        return self.group.leave(request, Caller("leaver", 5), now)

    def leave_alone(self, member_id: str, *, now: int = 0) -> list[Action]:
        """Leave as older clients do, without a batch."""
        request = LeaveGroupRequest(group_id="g", member_id=member_id)
        return self.group.leave(request, Caller("leaver", 2), now)

    def with_two(self, **fields: Any) -> Room:
        """A stable group in generation 2 with Ann as leader and Bob, at time 0."""
        self.join("ann", **fields)
        self.join("bob", **fields)
        self.join("ann", ANN, **fields)
        self.sync("bob", BOB, 2)
        self.sync("ann", ANN, 2, assignments={ANN: b"a", BOB: b"b"})
        return self

    def with_static_two(self, **fields: Any) -> Room:
        """The same two as static members ann and bob, with the same ids."""
        self.join("ann", group_instance_id="ann", version=5, **fields)
        self.join("bob", group_instance_id="bob", version=5, **fields)
        self.join("ann", ANN, group_instance_id="ann", version=5, **fields)
        self.sync("bob", BOB, 2)
        self.sync("ann", ANN, 2, assignments={ANN: b"a", BOB: b"b"})
        return self


def seats(*member_ids: str, metadata: bytes = READS, **instances: str) -> tuple[JoinGroupResponseMember, ...]:
    """Members as sent to the leader; `ann="ann"` means that ann-… is the instance ann."""
    return tuple(
        JoinGroupResponseMember(
            member_id=each, group_instance_id=instances.get(each.partition("-")[0]), metadata=metadata
        )
        for each in member_ids
    )


def joined(token: str, member_id: str, generation: int, leader: str, **fields: Any) -> AnswerJoin:
    defaults: dict[str, Any] = {"protocol_type": "consumer", "protocol_name": "range", "members": ()}
    response = JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=generation,
        leader=leader,
        member_id=member_id,
        **{**defaults, **fields},
    )
    return AnswerJoin(token, response)


def synced(token: str, assignment: bytes, protocol: str = "range", protocol_type: str = "consumer") -> AnswerSync:
    response = SyncGroupResponse(
        error_code=ErrorCode.NONE, protocol_type=protocol_type, protocol_name=protocol, assignment=assignment
    )
    return AnswerSync(token, response)


def left(*results: MemberResponse, error: ErrorCode = ErrorCode.NONE) -> AnswerLeave:
    return AnswerLeave("leaver", LeaveGroupResponse(error_code=error, members=results))


def gone(member_id: str, error: ErrorCode = ErrorCode.NONE, *, instance: str | None = None) -> MemberResponse:
    return MemberResponse(member_id=member_id, group_instance_id=instance, error_code=error)


def one(member_id: str, instance: str | None = None) -> MemberIdentity:
    return MemberIdentity(member_id=member_id, group_instance_id=instance)


def persisted(
    generation: int,
    at_ms: int,
    *members: tuple[str, bytes],
    leader: str | None = None,
    instances: Mapping[str, str] | None = None,
) -> Persist:
    """The record of a group of members with these ids and assignments; it is empty if there are none."""
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=generation,
        protocol="range" if members else None,
        leader=leader or (members[0][0] if members else None),
        current_state_timestamp=at_ms,
        members=tuple(
            MemberMetadata(
                member_id=member_id,
                group_instance_id=(instances or {}).get(member_id),
                client_id=member_id.partition("-")[0],
                client_host=HOST,
                rebalance_timeout=REBALANCE_MS,
                session_timeout=SESSION_MS,
                subscription=READS,
                assignment=assignment,
            )
            for member_id, assignment in members
        ),
    )
    return Persist("g", value)


__all__ = [
    "ANN", "BOB", "CYD", "HOST", "NEW_MEMBER_MS", "READS", "REBALANCE_MS", "SESSION_MS", "TOPIC_READ",
    "Room", "gone", "join_request", "joined", "left", "one", "persisted", "protocols", "refuse_join",
    "refuse_sync", "seats", "subscription", "sync_request", "synced", "uuids",
]  # fmt: skip
