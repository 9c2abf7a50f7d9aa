"""Plays for the members of a group, to be performed before a real Kafka broker and before Ottla's rules.

A play asks and notes what is answered. Ids, which differ from one performance to the next, are noted as who got
them: `ann` and, for the second id that she got, `ann'`.
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
    from collections.abc import Callable

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
        """What these have waited for."""
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
        # Only at the end, because a leader is told of ids before those who get them.
        return [(who, kind, self._anonymous(what)) for who, kind, what in self._notes]

    # ── What is noted ────────────────────────────────────────────────────────────────────────────────────────────

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


def dynamic_members(play: Play) -> None:
    play.two_stable()
    play.describe()
    play.heartbeat("ann")
    play.join("bob")  # no news
    play.sync("bob")
    play.join("bob", metadata=READS_OTHER, waits=True)
    play.heartbeat("ann")
    play.describe()
    play.join("ann", waits=True)
    play.hear("ann", "bob")
    play.describe()
    play.heartbeat("bob")
    play.sync("bob", waits=True)
    play.join("cyd", waits=True)
    play.hear("bob")
    play.sync("ann")
    play.leave("bob", (play.ids["bob"], None))
    play.join("ann", waits=True)
    play.hear("ann", "cyd")
    play.sync("ann", assignments={"ann": b"only"})
    play.sync("cyd")
    play.leave("ann", (play.ids["ann"], None), ("nobody", None), version=4)
    play.leave("cyd", (play.ids["cyd"], None), version=1)
    play.leave("cyd", (play.ids["cyd"], None), version=1)
    play.describe()


def ids_are_required(play: Play) -> None:
    play.join("ann", 4)
    play.describe()
    play.heartbeat("ann")
    play.sync("ann")
    play.join("ann", 4)
    play.join("ann", 4)  # as if the answer had been lost
    play.sync("ann", assignments={"ann": b"a"})
    play.join("bob", 9)
    play.join("eve", 9, member_id="eve-1")
    play.heartbeat("bob")
    play.join("bob", 9, waits=True)
    play.join("ann", 9, waits=True)
    play.hear("ann", "bob")
    play.join("bob", 9)  # still the same generation
    play.join("ann", 9)


def static_members(play: Play) -> None:
    play.two_static()
    old_bob = play.ids["bob"]
    play.join("bob", 5, group_instance_id="B", member_id="")
    play.describe()
    for instance in ("B", "C", None):
        play.heartbeat("bob", member_id=old_bob, group_instance_id=instance)
        play.sync("bob", member_id=old_bob, group_instance_id=instance)
        play.commit("bob", 9, member_id=old_bob, group_instance_id=instance)
    play.join("bob", 5, group_instance_id="B", member_id=old_bob)
    play.leave("bob", (old_bob, "B"), (old_bob, None), ("", "C"), ("", None))
    play.sync("bob", group_instance_id="B")
    play.heartbeat("ann", group_instance_id="A")
    play.join("ann", 9, group_instance_id="A", member_id="")
    play.sync("ann", group_instance_id="A")
    play.join("ann", 8, group_instance_id="A", member_id="")
    play.sync("ann", group_instance_id="A")
    play.join("ann", 8, group_instance_id="A", waits=True)
    play.join("bob", 8, group_instance_id="B", waits=True)
    play.hear("ann", "bob")
    play.leave("admin", ("", "B"))
    play.heartbeat("ann", group_instance_id="A")


def static_member_restarts_while_others_wait(play: Play) -> None:
    play.two_static()
    play.join("ann", 5, group_instance_id="A", waits=True)
    play.join("ann again", 5, group_instance_id="A", waits=True)
    play.hear("ann")
    play.join("bob", 5, group_instance_id="B", waits=True)
    play.hear("ann again", "bob")
    play.sync("bob", group_instance_id="B", waits=True)
    play.join("bob again", 5, group_instance_id="B", waits=True)
    play.hear("bob")
    play.join("ann again", 5, group_instance_id="A", waits=True)
    play.hear("ann again", "bob again")


def static_member_with_another_protocol(play: Play) -> None:
    play.join("ann", 5, group_instance_id="A", protocols=("range", "sticky"))
    play.sync("ann", assignments={"ann": b"a"})
    play.join("ann", 5, group_instance_id="A", member_id="", protocols=("other",))
    play.join("ann", 5, group_instance_id="A", member_id="", protocols=("sticky", "range"))
    play.sync("ann", protocol_name="range")
    play.sync("ann", protocol_name="sticky")


def protocols_are_voted_on(play: Play) -> None:
    play.join("ann", protocols=())
    play.join("ann", protocol_type="")
    play.join("ann", protocols=("only-ann", "range", "sticky"))
    play.join("bob", protocol_type="connect")
    play.join("bob", protocols=("only-bob",))
    play.join("bob", protocols=("sticky", "range"), waits=True)
    play.join("cyd", protocols=("sticky", "only-cyd", "range"), waits=True)
    play.join("ann", protocols=("only-ann", "range", "sticky"), waits=True)
    play.hear("ann", "bob", "cyd")
    play.sync("bob", protocol_name="range")
    play.sync("bob", protocol_type="connect", protocol_name="sticky")
    play.sync("bob", 3, waits=True)
    play.sync("ann", protocol_name="sticky", assignments={"bob": b"b"})
    play.hear("bob")
    play.join("bob", protocols=("only-cyd",))


def wrong_requests(play: Play) -> None:
    play.join("ann", session_timeout_ms=MIN_SESSION_MS - 1)
    play.join("ann", session_timeout_ms=1_800_001)
    play.join("ann", member_id="ann-1")
    play.join("ann", group_id="")
    play.sync("ann", group_id="")
    play.heartbeat("ann", group_id="")
    play.leave("ann", ("ann-1", None), group_id="")
    play.leave("ann", ("ann-1", None), version=2)
    play.leave("ann", ("ann-1", None))
    play.sync("ann")
    play.heartbeat("ann")
    play.describe(5)
    play.describe(6)
    play.delete()
    play.delete_offsets(TOPIC)
    play.two_stable()
    for generation in (play.generation - 1, play.generation + 1, -1):
        play.heartbeat("bob", generation_id=generation)
        play.sync("bob", generation_id=generation)
        play.commit("bob", generation_id_or_member_epoch=generation)
    play.delete()


def a_full_group(play: Play) -> None:
    play.two_stable()
    play.join("cyd", waits=True)
    play.join("ann", waits=True)
    play.join("bob", waits=True)
    play.hear("ann", "bob", "cyd")
    play.join("dan")
    play.join("dan", 9)
    play.join("ann", metadata=READS_OTHER, waits=True)
    play.join("dan", waits=True)
    play.join("cyd", waits=True)
    play.join("bob", member_id=play.ids["bob"])


def offsets(play: Play) -> None:
    play.commit("ann", 8, generation_id_or_member_epoch=1)
    play.commit("ann", 9, generation_id_or_member_epoch=1)
    play.commit("admin", 9, generation_id_or_member_epoch=-1)
    play.describe()
    play.commit("admin", 4, generation_id_or_member_epoch=-1, retention_time_ms=1000)
    play.commit("admin", metadata="x" * 4096)
    play.commit("admin", metadata="ö" * 4096)
    play.commit("admin", metadata="x" * 4097)
    play.join("ann")
    play.commit("ann")
    play.sync("ann")
    play.commit("ann", topics=(TOPIC, OTHER_TOPIC))
    play.commit("admin", generation_id_or_member_epoch=-1)
    play.commit("ann", generation_id_or_member_epoch=-1)
    play.commit("admin", generation_id_or_member_epoch=-1, member_id="whoever")
    play.commit("admin", generation_id_or_member_epoch=-1, group_instance_id="A")
    play.join("bob", waits=True)
    play.commit("ann")
    play.delete_offsets(TOPIC, OTHER_TOPIC)
    play.leave("ann", (play.ids["ann"], None))
    play.hear("bob")
    play.delete()
    play.leave("bob", (play.ids["bob"], None))
    play.commit("bob")
    play.commit("admin", generation_id_or_member_epoch=-1)
    play.delete_offsets(TOPIC, OTHER_TOPIC)
    play.describe()
    play.delete()
    play.delete()


def other_kinds_of_members(play: Play) -> None:
    play.join("con", protocol_type="connect", protocols=("default",), metadata=b"opaque")
    play.sync("con", protocol_type="connect", protocol_name="default", assignments={"con": b"\x00\xff"})
    play.describe()
    play.commit("con")
    play.delete_offsets(TOPIC)
    play.leave("con", (play.ids["con"], None))
    play.delete_offsets(TOPIC)
    play.join("ann")


def silence(play: Play) -> None:
    play.join("ann", session_timeout_ms=30_000)
    play.join("bob", session_timeout_ms=500, waits=True)
    play.join("ann", waits=True)
    play.hear("ann", "bob")
    play.sync("bob", waits=True)
    play.wait(1000)  # who waits need not heartbeat
    play.sync("ann", assignments={"bob": b"b"})
    play.hear("bob")
    play.heartbeat("bob")
    play.wait(1500)
    play.heartbeat("bob")
    play.heartbeat("ann")
    play.describe()


def everybody_falls_silent(play: Play) -> None:
    play.join("ann", session_timeout_ms=300)
    play.join("bob", 4, session_timeout_ms=300)
    play.wait(1500)
    play.describe()
    play.join("bob", 4, session_timeout_ms=300)


def somebody_does_not_come_back(play: Play) -> None:
    play.join("ann", rebalance_timeout_ms=500)
    play.sync("ann")
    play.join("bob", rebalance_timeout_ms=500, waits=True)
    play.wait(1500)
    play.hear("bob")
    play.heartbeat("ann")
    play.heartbeat("bob")


def somebody_never_syncs(play: Play) -> None:
    play.join("ann", rebalance_timeout_ms=500)
    play.join("bob", rebalance_timeout_ms=500, waits=True)
    play.join("ann", rebalance_timeout_ms=500, waits=True)
    play.hear("ann", "bob")
    play.sync("bob", waits=True)
    play.wait(1500)
    play.hear("bob")
    play.heartbeat("ann")
    play.heartbeat("bob")
    play.join("bob", rebalance_timeout_ms=500)


def static_member_stays_away(play: Play) -> None:
    play.join("ann", 5, group_instance_id="A", rebalance_timeout_ms=500)
    play.sync("ann")
    play.join("bob", rebalance_timeout_ms=500, waits=True)
    play.wait(1500)
    play.hear("bob")
    play.describe()


def leaving_while_others_join(play: Play) -> None:
    play.two_stable()
    play.join("cyd", 4)
    play.join("cyd", 4, waits=True)
    play.leave("admin", (play.ids["cyd"], None))
    play.hear("cyd")
    play.join("cyd", 4)  # its id is no longer good
    play.ids["cyd"] = ""
    play.join("cyd", 4)
    play.join("ann", waits=True)
    play.join("bob", waits=True)
    play.leave("cyd", (play.ids["cyd"], None))  # which it had not used yet
    play.hear("ann", "bob")
    play.sync("ann", assignments={"ann": b"a", "bob": b"b"})
    play.join("ann", waits=True)
    play.leave("bob", (play.ids["bob"], None))
    play.hear("ann")
    play.describe()


def hanging_up(play: Play) -> None:
    play.two_stable()
    play.join("bob", metadata=READS_OTHER, waits=True)
    play.stage.hang_up("bob")
    play.join("ann")
    play.join("bob", metadata=READS_OTHER)
    play.sync("bob", waits=True)
    play.stage.hang_up("bob")
    play.sync("ann", assignments={"bob": b"for bob"})
    play.sync("bob")
    play.heartbeat("bob")


def the_first_wait_for_company(play: Play) -> None:
    play.join("ann", waits=True)
    play.join("bob", waits=True)
    play.describe()
    play.wait(3 * INITIAL_DELAY_MS)
    play.hear("ann", "bob")
    play.sync("ann", assignments={"ann": b"a"})
    play.sync("bob")
    play.leave("ann", (play.ids["ann"], None), (play.ids["bob"], None))
    play.describe()
    play.join("cyd", waits=True)
    play.wait(2 * INITIAL_DELAY_MS)
    play.hear("cyd")


def the_first_wait_is_for_nobody(play: Play) -> None:
    play.join("ann", 4)
    play.join("ann", 4, waits=True)
    play.leave("admin", (play.ids["ann"], None))
    play.hear("ann")
    play.describe()
    play.wait(2 * INITIAL_DELAY_MS)
    play.describe()


PLAYS_AFTER_A_WAIT: tuple[Callable[[Play], None], ...] = (
    the_first_wait_for_company,
    the_first_wait_is_for_nobody,
)
PLAYS: tuple[Callable[[Play], None], ...] = (
    dynamic_members,
    ids_are_required,
    static_members,
    static_member_restarts_while_others_wait,
    static_member_with_another_protocol,
    protocols_are_voted_on,
    wrong_requests,
    a_full_group,
    offsets,
    other_kinds_of_members,
    silence,
    everybody_falls_silent,
    somebody_does_not_come_back,
    somebody_never_syncs,
    static_member_stays_away,
    leaving_while_others_join,
    hanging_up,
)
