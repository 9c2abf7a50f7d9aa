"""A scripted group: the requests of its members, and the recorded responses.

Ids, which differ from run to run, are recorded by their owner: `ann`, and `ann'` for her second id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec import to_builtins

from ottla.core.errors import ErrorCode
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

if TYPE_CHECKING:
    from ottla.wire.declare import Request, Response

TOPIC = "read"
OTHER_TOPIC = "other"
MAX_SIZE = 3
MIN_SESSION_MS = 100
INITIAL_DELAY_MS = 700
READS = b"\x00\x01\x00\x00\x00\x01\x00\x04read\xff\xff\xff\xff\x00\x00\x00\x00"
READS_OTHER = b"\x00\x01\x00\x00\x00\x01\x00\x05other\xff\xff\xff\xff\x00\x00\x00\x00"


class Stage(Protocol):
    def send(self, who: str, request: Request, version: int) -> None: ...
    def receive(self, who: str) -> Response: ...
    def is_silent(self, who: str) -> bool:
        """Whether an answer is being kept waiting."""

    def wait(self, duration_ms: int) -> None: ...
    def hang_up(self, who: str) -> None: ...


class Play:
    """One group on a stage."""

    def __init__(self, stage: Stage, group_id: str) -> None:
        self.stage = stage
        self.group_id = group_id
        self._notes: list[Any] = []
        self.ids: dict[str, str] = {}
        """The id that each member has at the moment."""
        self.generation = -1
        self._names: dict[str, str] = {}

    # ── What members do ──────────────────────────────────────────────────────────────────────────────────────────

    def join(self, who: str, version: int = 3, *, waits: bool = False, **fields: Any) -> None:  # noqa: ANN401
        names = fields.pop("protocols", ("range",))
        metadata = fields.pop("metadata", READS)
        defaults: dict[str, Any] = {
            "group_id": self.group_id,
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 60_000,
            "member_id": self.ids.get(who, ""),
            "protocol_type": "consumer",
            "protocols": tuple(JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names),
        }
        self._do(who, JoinGroupRequest(**{**defaults, **fields}), version, waits=waits)

    def sync(self, who: str, version: int = 5, *, waits: bool = False, **fields: Any) -> None:  # noqa: ANN401
        given = fields.pop("assignments", {})
        defaults: dict[str, Any] = {
            "group_id": self.group_id,
            "generation_id": self.generation,
            "member_id": self.ids.get(who, ""),
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": tuple(
                SyncGroupRequestAssignment(member_id=self.ids[name], assignment=what) for name, what in given.items()
            ),
        }
        self._do(who, SyncGroupRequest(**{**defaults, **fields}), version, waits=waits)

    def heartbeat(self, who: str, version: int = 4, **fields: Any) -> None:  # noqa: ANN401
        defaults = {"group_id": self.group_id, "generation_id": self.generation, "member_id": self.ids.get(who, "")}
        self._do(who, HeartbeatRequest(**{**defaults, **fields}), version)

    def leave(self, who: str, *members: tuple[str, str | None], version: int = 5, group_id: str | None = None) -> None:
        """These ids and instances leave together; from version 3 on."""
        request = LeaveGroupRequest(
            group_id=self.group_id if group_id is None else group_id,
            member_id=members[0][0],
            members=tuple(MemberIdentity(member_id=each, group_instance_id=instance) for each, instance in members),
        )
        self._do(who, request, version)

    def commit(self, who: str, version: int = 9, **fields: Any) -> None:  # noqa: ANN401
        metadata = fields.pop("metadata", "")
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata=metadata)
        names = fields.pop("topics", (TOPIC,))
        defaults: dict[str, Any] = {
            "group_id": self.group_id,
            "generation_id_or_member_epoch": self.generation,
            "member_id": self.ids.get(who, ""),
            "topics": tuple(OffsetCommitRequestTopic(name=name, partitions=(partition,)) for name in names),
        }
        self._do(who, OffsetCommitRequest(**{**defaults, **fields}), version)

    def delete_offsets(self, *topics: str, group_id: str | None = None) -> None:
        partitions = (OffsetDeleteRequestPartition(partition_index=0),)
        request = OffsetDeleteRequest(
            group_id=group_id or self.group_id,
            topics=tuple(OffsetDeleteRequestTopic(name=name, partitions=partitions) for name in topics),
        )
        self._do("admin", request, 0)

    def describe(self, version: int = 6, group_id: str | None = None) -> None:
        self._do("admin", DescribeGroupsRequest(groups=(group_id or self.group_id,)), version)

    def delete(self, group_id: str | None = None) -> None:
        self._do("admin", DeleteGroupsRequest(groups_names=(group_id or self.group_id,)), 2)

    def wait(self, duration_ms: int) -> None:
        self.stage.wait(duration_ms)

    def hear(self, *who: str) -> None:
        """Receive the pending responses."""
        for each in who:
            self._note(each, self.stage.receive(each))

    def two_stable(self) -> None:
        """Ann, who leads, and Bob."""
        self.join("ann")
        self.join("bob", waits=True)
        self.join("ann", waits=True)
        self.hear("ann", "bob")
        self.sync("bob", waits=True)
        self.sync("ann", assignments={"ann": b"a", "bob": b"b"})
        self.hear("bob")

    def two_static(self) -> None:
        self.join("ann", 5, group_instance_id="A")
        self.join("bob", 5, group_instance_id="B", waits=True)
        self.join("ann", 5, group_instance_id="A", waits=True)
        self.hear("ann", "bob")
        self.sync("bob", waits=True, group_instance_id="B")
        self.sync("ann", assignments={"ann": b"a", "bob": b"b"}, group_instance_id="A")
        self.hear("bob")

    @property
    def notes(self) -> list[Any]:
        # Only at the end, because a leader sees ids before the members that get them.
        return [(who, kind, self._anonymous(what)) for who, kind, what in self._notes]

    # ── Recording  ────────────────────────────────────────────────────────────────────────────────────────────

    def _do(self, who: str, request: Request, version: int, *, waits: bool = False) -> None:
        self.stage.send(who, request, version)
        if waits:
            self._notes.append((who, "waits", self.stage.is_silent(who)))
        else:
            self._note(who, self.stage.receive(who))

    def _note(self, who: str, response: Response) -> None:
        if isinstance(response, JoinGroupResponse):
            self._remember(who, response)
        self._notes.append((who, type(response).__name__, to_builtins(response)))

    def _remember(self, who: str, response: JoinGroupResponse) -> None:
        self.generation = max(self.generation, response.generation_id)
        if response.member_id and response.member_id not in self._names:
            count = sum(name.rstrip("'") == who for name in self._names.values())
            self._names[response.member_id] = who + "'" * count
        if response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.ids[who] = response.member_id

    def _anonymous(self, value: Any) -> Any:  # noqa: ANN401
        if isinstance(value, dict):
            # In an error Kafka's protocol name is null from JoinGroup 7 on and empty before; ours is always empty.
            ignored = {"throttle_time_ms", "protocol_name"} if value.get("error_code") else {"throttle_time_ms"}
            return {key: self._anonymous(each) for key, each in value.items() if key not in ignored}
        if isinstance(value, tuple):
            # Kafka lists members in no particular order.
            return sorted((self._anonymous(each) for each in value), key=repr)
        if isinstance(value, str):
            return self._names.get(value, value).replace(self.group_id, "GROUP")
        return value
