"""The group coordinator: many groups, unknown groups, timers, and its log."""

from typing import Any

import pytest

from ottla.core.errors import ErrorCode, ProtocolError
from ottla.core.ids import TopicPartition
from ottla.groups import records
from ottla.groups.actions import (
    Action,
    AnswerLeave,
    Caller,
    MemberExpired,
    Persist,
    PersistOffsets,
    error_after_failed_append,
    records_of,
)
from ottla.groups.config import GroupConfig
from ottla.groups.coordinator import Coordinator
from ottla.groups.formats import OffsetCommitValue, OffsetKey
from ottla.groups.states import State
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

from .making import SESSION_MS, environment, gone, join_request, joined, one, refuse_join, refuse_sync, seats

AT = TopicPartition("read", 0)
VALUE = OffsetCommitValue(offset=5, commit_timestamp=100)


class Office:
    """A coordinator whose log is a list."""

    def __init__(self, **settings: int) -> None:
        self.groups = Coordinator(environment(GroupConfig(**settings)))
        self.log: list[records.KeyValue] = []

    def carry_out(self, actions: list[Action]) -> list[Action]:
        for action in actions:
            if isinstance(action, Persist | PersistOffsets):
                self.log += records_of(action)
                self.groups.table.apply(action)
        return actions

    def join(self, group_id: str, who: str = "ann", member_id: str = "", now: int = 0, **fields: Any) -> list[Action]:
        version = fields.pop("version", 3)
        request = join_request(member_id, group_id=group_id, **fields)
        return self.carry_out(self.groups.join(request, Caller(who, version, who), now))

    def sync(self, group_id: str, member_id: str, generation: int = 1, now: int = 0) -> list[Action]:
        assigned = (SyncGroupRequestAssignment(member_id=member_id, assignment=b"all"),)
        request = SyncGroupRequest(
            group_id=group_id, generation_id=generation, member_id=member_id, assignments=assigned
        )
        return self.carry_out(self.groups.sync(request, "sync", now))

    def heartbeat(self, group_id: str, member_id: str, generation: int = 1, now: int = 0) -> ErrorCode:
        request = HeartbeatRequest(group_id=group_id, generation_id=generation, member_id=member_id)
        return self.groups.heartbeat(request, now)

    def leave(self, group_id: str, member_id: str, now: int = 0, version: int = 3) -> list[Action]:
        request = LeaveGroupRequest(group_id=group_id, member_id=member_id, members=(one(member_id),))
        return self.carry_out(self.groups.leave(request, Caller("leaver", version), now))

    def commit(self, group_id: str, value: OffsetCommitValue = VALUE) -> None:
        self.carry_out([PersistOffsets(group_id, {AT: value})])

    def expire(self, now: int) -> list[Action]:
        return self.carry_out(self.groups.table.expire(now))

    def restarted(self, now: int) -> "Office":
        office = Office()
        for record in self.log:
            office.groups.table.replay(*record)
        assert office.carry_out(office.groups.table.start(now)) == []
        return office

    @property
    def names(self) -> set[str]:
        return {group.group_id for group in self.groups.table}


# ── Groups that do not exist ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_group_is_created_by_its_first_member() -> None:
    office = Office()
    assert office.join("new") == [joined("ann", "ann-1", 1, leader="ann-1", members=seats("ann-1"))]
    assert office.names == {"new"}


def test_a_refused_join_creates_no_group() -> None:
    office = Office()
    office.join("new", protocols=())
    office.join("new", session_timeout_ms=0)
    assert office.names == set()


def test_a_group_with_only_a_pending_member_is_removed_with_it() -> None:
    office = Office()
    office.join("new", version=4)
    assert office.names == {"new"}
    assert office.expire(SESSION_MS) == [MemberExpired("new", "ann-1", "join")]
    assert office.names == set()
    assert office.log == []


def test_requests_to_an_unknown_group_are_refused() -> None:
    office = Office()
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert office.join("none", "ann", "ann-1") == [refuse_join("ann", unknown, "ann-1")]
    assert office.sync("none", "ann-1") == [refuse_sync("sync", unknown)]
    assert office.heartbeat("none", "ann-1") is unknown
    assert office.leave("none", "ann-1", version=2) == [AnswerLeave("leaver", LeaveGroupResponse(error_code=unknown))]
    assert office.leave("none", "ann-1") == [
        AnswerLeave("leaver", LeaveGroupResponse(error_code=ErrorCode.NONE, members=(gone("ann-1", unknown),)))
    ]
    assert office.groups.forget("none", "ann", 0) == []
    assert office.groups.persist_failed(Persist("none", None), 0) == []
    assert office.groups.table.unload("none", ErrorCode.NOT_COORDINATOR) == []
    assert office.names == set()


def test_members_need_a_group_with_a_name() -> None:
    office = Office()
    invalid = ErrorCode.INVALID_GROUP_ID
    assert office.join("") == [refuse_join("ann", invalid)]
    assert office.sync("", "ann-1") == [refuse_sync("sync", invalid)]
    assert office.heartbeat("", "ann-1") is invalid
    assert office.leave("", "ann-1") == [AnswerLeave("leaver", LeaveGroupResponse(error_code=invalid))]


@pytest.mark.parametrize(
    ("version", "error", "message"),
    [(5, ErrorCode.NONE, None), (6, ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found.")],
)
def test_a_group_that_does_not_exist_is_described_as_dead(version: int, error: ErrorCode, message: str | None) -> None:
    group = Office().groups.describe("none", version)
    assert (group.error_code, group.error_message, group.group_state, group.members) == (error, message, "Dead", ())


# ── Groups ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_groups_are_listed_by_state_and_type_however_those_are_spelled() -> None:
    office = Office()
    office.join("rebalancing")
    office.commit("simple")

    def listed(states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> set[str]:
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        return {group.group_id for group in office.groups.listed(request)}

    assert listed() == {"rebalancing", "simple"}
    assert listed(states=("Empty",)) == {"simple"}
    assert listed(states=("empty", "completingRebalance")) == {"rebalancing", "simple"}
    assert listed(states=("stable",)) == set()
    assert listed(types=("Classic",)) == {"rebalancing", "simple"}
    assert listed(types=("consumer", "share")) == set()
    assert office.groups.describe("simple", 6).group_state == "Empty"


def test_an_empty_group_is_deleted_with_its_offsets() -> None:
    office = Office()
    office.join("g")
    office.sync("g", "ann-1")
    office.commit("g")
    office.leave("g", "ann-1")
    error, actions = office.groups.delete("g")
    assert error is ErrorCode.NONE
    assert actions == [PersistOffsets("g", {AT: None}), Persist("g", None)]
    assert office.names == {"g"}  # until it is written
    office.carry_out(actions)
    assert office.names == set()
    assert office.groups.offsets.all("g") == {}
    assert office.restarted(0).names == set()


def test_a_group_with_members_or_an_unknown_one_cannot_be_deleted() -> None:
    office = Office()
    office.join("g")
    assert office.groups.delete("g") == (ErrorCode.NON_EMPTY_GROUP, [])
    assert office.groups.delete("none") == (ErrorCode.GROUP_ID_NOT_FOUND, [])


def test_a_simple_group_is_deleted_too() -> None:
    office = Office()
    office.commit("g")
    error, actions = office.groups.delete("g")
    office.carry_out(actions)
    assert error is ErrorCode.NONE
    assert office.names == set()


def test_a_group_that_moves_to_another_node_is_unloaded_but_kept_in_the_log() -> None:
    office = Office()
    office.join("g")
    office.sync("g", "ann-1")
    office.commit("g")
    office.join("g", "bob")
    assert office.groups.table.unload("g", ErrorCode.NOT_COORDINATOR) == [
        refuse_join("bob", ErrorCode.NOT_COORDINATOR, "bob-2")
    ]
    assert office.names == set()
    assert office.groups.table.next_deadline_ms() is None
    assert office.restarted(0).names == {"g"}


# ── Time ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_timer_serves_all_groups() -> None:
    office = Office()
    assert office.groups.table.next_deadline_ms() is None
    office.join("later", session_timeout_ms=9000)
    office.join("sooner", "bob", session_timeout_ms=7000)
    assert office.groups.table.next_deadline_ms() == 7000
    assert MemberExpired("sooner", "bob-2", "heartbeat") in office.expire(7000)
    assert office.groups.table.next_deadline_ms() == 9000
    assert MemberExpired("later", "ann-1", "heartbeat") in office.expire(9000)
    assert office.groups.table.next_deadline_ms() is None


def test_the_timer_may_fire_early_but_never_late() -> None:
    office = Office()
    office.join("g", session_timeout_ms=9000)
    assert office.heartbeat("g", "ann-1", now=5000) is ErrorCode.NONE
    assert office.groups.table.next_deadline_ms() == 9000
    assert office.expire(9000) == []
    assert office.groups.table.next_deadline_ms() == 14_000
    assert MemberExpired("g", "ann-1", "heartbeat") in office.expire(14_000)


def test_an_earlier_deadline_moves_the_timer() -> None:
    office = Office()
    office.join("g", session_timeout_ms=60_000)
    office.join("g", "bob", version=4, session_timeout_ms=6000, now=1)
    assert office.groups.table.next_deadline_ms() == 6001
    assert office.expire(6001) == [MemberExpired("g", "bob-2", "join")]
    assert office.groups.table.next_deadline_ms() == 60_000
    assert MemberExpired("g", "ann-1", "heartbeat") in office.expire(60_000)
    assert office.groups.table.next_deadline_ms() is None


def test_a_failure_to_write_moves_the_timer_too() -> None:
    office = Office()
    office.join("g", session_timeout_ms=60_000, rebalance_timeout_ms=9000)
    [persist, _] = office.sync("g", "ann-1")
    assert isinstance(persist, Persist)
    assert office.expire(9000) == []
    assert office.groups.table.next_deadline_ms() == 60_000
    assert office.groups.persist_failed(PersistOffsets("g", {}), 9000) == []
    assert office.groups.persist_failed(persist, 9000) == []
    assert office.groups.table.next_deadline_ms() == 18_000


def test_a_disconnect_moves_the_timer_too() -> None:
    office = Office()
    office.join("g", session_timeout_ms=60_000, rebalance_timeout_ms=60_000)
    office.sync("g", "ann-1")
    office.join("g", "bob", version=4, session_timeout_ms=6000)
    office.join("g", "bob", "bob-2", version=4, session_timeout_ms=6000)
    assert office.expire(6000) == []
    office.groups.forget("g", "bob", 7000)
    assert office.groups.table.next_deadline_ms() == 13_000


def test_after_expiring_no_deadline_is_left_in_the_past() -> None:
    office = Office()
    for number in range(20):
        office.join(f"g{number}", session_timeout_ms=6000 + number)
    for now in range(6000, 6030):
        office.expire(now)
        next_ms = office.groups.table.next_deadline_ms()
        assert next_ms is None or next_ms > now


# ── The log ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_acknowledged_changes_survive_a_restart() -> None:
    office = Office()
    office.join("stable")
    office.sync("stable", "ann-1")
    office.commit("stable")
    office.commit("simple")
    office.join("left")
    office.sync("left", "ann-2")
    office.leave("left", "ann-2")
    again = office.restarted(now=50)
    assert {group.group_id: group.state for group in again.groups.table} == {
        "stable": State.STABLE,
        "simple": State.EMPTY,
        "left": State.EMPTY,
    }
    assert again.heartbeat("stable", "ann-1", now=60) is ErrorCode.NONE
    assert again.groups.offsets.get("stable", AT) == VALUE
    assert again.groups.offsets.get("simple", AT) == VALUE
    assert again.groups.table.next_deadline_ms() == 50 + SESSION_MS


def test_sync_is_answered_after_it_is_written() -> None:
    office = Office()
    office.join("g")
    assert [type(action).__name__ for action in office.sync("g", "ann-1")] == ["Persist", "AnswerSync"]


def test_offsets_survive_the_tombstone_of_their_group() -> None:
    office = Office()
    office.commit("g")
    office.carry_out([Persist("g", None)])
    assert office.names == {"g"}
    assert office.groups.offsets.get("g", AT) == VALUE


def test_records_of_unknown_types_are_ignored() -> None:
    office = Office()
    office.groups.table.replay(b"\x00\x63\x00\x01g", b"whatever")
    assert office.names == set()


@pytest.mark.parametrize(
    "record",
    [
        (b"", None),
        (b"\x00\x02\x00\x01g", b"\x00\x63"),
        records.KeyValue(records.encode_offset(OffsetKey(group="g", topic="t", partition=0), None).key, b""),
    ],
)
def test_a_record_that_cannot_be_read_changes_nothing(record: tuple[bytes, bytes | None]) -> None:
    office = Office()
    with pytest.raises(ProtocolError):
        office.groups.table.replay(*record)
    assert office.names == set()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_CONFIG),
    ],
)
def test_a_failed_append_is_answered_with_a_retriable_error(error: ErrorCode, told: ErrorCode) -> None:
    assert error_after_failed_append(error) is told
