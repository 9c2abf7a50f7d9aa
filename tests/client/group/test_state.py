"""How a member reacts to each response of its coordinator."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.client.config import ConsumerConfig
from ottla.client.errors import AuthorizationFailed, BrokerError, CommitFailed
from ottla.client.group.assignors.known import assignors_named
from ottla.client.group.state import Change, MemberState, Outcome, members_of
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.wire.consumer_protocol import (
    Assignment,
    Subscription,
    by_topic,
    decode_assignment,
    decode_previous_assignment,
    decode_subscription,
    each_partition,
    encode_assignment,
    encode_subscription,
)
from ottla.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.wire.messages.sync_group import SyncGroupResponse

P0, P1, P2 = (TopicPartition("t", index) for index in range(3))
CONFIG = ConsumerConfig(group="g", assignors=("range",), rack="r")
EACH_STEP = pytest.mark.parametrize("step", ["join", "sync", "heartbeat"])


def _state(config: ConsumerConfig = CONFIG) -> MemberState:
    return MemberState(config, assignors_named(config.assignors))


def _cooperative() -> MemberState:
    return _state(replace(CONFIG, assignors=("cooperative-sticky",)))


def _joined(**fields: object) -> JoinGroupResponse:
    answer: dict[str, object] = {
        "error_code": 0,
        "generation_id": 1,
        "protocol_name": "range",
        "leader": "somebody",
        "member_id": "me",
        "members": (),
    }
    return JoinGroupResponse(**(answer | fields))  # type: ignore[arg-type]


def _synced(*partitions: TopicPartition, code: int = 0) -> SyncGroupResponse:
    data = encode_assignment(Assignment(assigned_partitions=by_topic(partitions)))
    return SyncGroupResponse(error_code=code, assignment=data)


def _anything(_topic: str) -> bool:
    return True


def _stable(state: MemberState, *partitions: TopicPartition, generation: int = 1) -> MemberState:
    """In a generation, with these partitions."""
    protocol = "cooperative-sticky" if state.is_cooperative else "range"
    assert state.joined(_joined(generation_id=generation, protocol_name=protocol)) is Outcome.GO_ON
    change = state.synced(_synced(*partitions), _anything)
    assert isinstance(change, Change)
    state.gave_up(change.revoked)
    state.took(change.added)
    return state


def _answer(state: MemberState, step: str, code: int) -> Outcome | Change:
    if step == "join":
        return state.joined(_joined(error_code=code, member_id=""))
    if step == "sync":
        return state.synced(_synced(code=code), _anything)
    return state.heartbeat_answered(code)


def _subscription(state: MemberState, *topics: str) -> Subscription:
    return decode_subscription(state.join_request(topics).protocols[0].metadata)


def test_a_member_joins_with_its_configuration() -> None:
    state = _state(replace(CONFIG, group_instance_id="static", session_timeout_ms=7000, max_poll_interval_ms=8000))
    request = state.join_request(["b", "a"], "it begins")

    assert (request.group_id, request.member_id, request.group_instance_id) == ("g", "", "static")
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (7000, 8000)
    assert (request.protocol_type, request.reason) == ("consumer", "it begins")
    assert [protocol.name for protocol in request.protocols] == ["range"]
    assert _subscription(state, "b", "a") == Subscription(topics=("a", "b"), generation_id=-1, rack_id="r")


def test_a_member_rejoins_with_the_member_id_from_the_coordinator() -> None:
    state = _state()
    required = _joined(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="me", generation_id=-1)
    assert state.joined(required) is Outcome.AGAIN
    assert state.join_request(["t"]).member_id == "me"
    assert state.is_lost


def test_a_joined_member_is_in_its_generation() -> None:
    state = _stable(_state(), P0, generation=4)
    assert (state.generation, state.member_id, state.is_leader, state.is_lost) == (4, "me", False, False)
    heartbeat = state.heartbeat_request()
    assert (heartbeat.group_id, heartbeat.generation_id, heartbeat.member_id) == ("g", 4, "me")


def test_only_the_leader_sends_assignments() -> None:
    state = _state()
    state.joined(_joined(leader="me"))
    assert state.is_leader
    assert state.assignor.name == "range"

    request = state.sync_request({"me": [P1], "you": []})
    shares = {one.member_id: decode_assignment(one.assignment) for one in request.assignments}
    assert each_partition(shares["me"].assigned_partitions) == (P1,)
    assert each_partition(shares["you"].assigned_partitions) == ()
    assert (request.protocol_type, request.protocol_name) == ("consumer", "range")
    assert state.sync_request({}).assignments == ()


def test_a_group_that_agrees_on_an_unknown_assignor_is_refused() -> None:
    with pytest.raises(BrokerError, match="'mystery'") as refused:
        _state().joined(_joined(protocol_name="mystery"))
    assert refused.value.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_an_eager_member_revokes_everything_before_it_joins() -> None:
    state = _stable(_state(), P0, P1)
    assert state.to_give_up(_anything) == {P0, P1}
    state.gave_up({P0, P1})
    assert state.to_give_up(_anything) == frozenset()
    assert _subscription(state, "t").owned_partitions == ()


def test_a_cooperative_member_keeps_subscribed_partitions_and_reports_them() -> None:
    state = _stable(_cooperative(), P0, P1, generation=3)
    assert state.to_give_up(_anything) == frozenset()
    assert state.to_give_up(lambda topic: topic != "t") == {P0, P1}
    subscription = _subscription(state, "t")
    assert each_partition(subscription.owned_partitions) == (P0, P1)
    assert subscription.generation_id == 3


def test_a_cooperative_member_learns_revoked_and_new_partitions() -> None:
    state = _stable(_cooperative(), P0, P1)
    state.joined(_joined(generation_id=2, protocol_name="cooperative-sticky"))
    assert state.synced(_synced(P1, P2), _anything) == Change(revoked=frozenset({P0}), added=frozenset({P2}))


def test_a_member_with_an_eager_assignor_is_eager() -> None:
    assert not _state(replace(CONFIG, assignors=("cooperative-sticky", "range"))).is_cooperative


def test_an_assignment_of_unsubscribed_topics_is_ignored() -> None:
    state = _state()
    state.joined(_joined())
    change = state.synced(_synced(P0), lambda topic: topic == "other")
    assert change == Change(frozenset(), frozenset(), is_wrong=True)


def test_a_member_without_an_assignment_has_no_partitions() -> None:
    state = _state()
    state.joined(_joined())
    assert state.synced(SyncGroupResponse(error_code=0, assignment=b""), _anything) == Change(frozenset(), frozenset())


def test_a_sticky_member_reports_its_previous_partitions_even_after_revocation() -> None:
    state = _state(replace(CONFIG, assignors=("sticky",)))
    assert _subscription(state, "t").user_data is None
    state.joined(_joined(generation_id=5, protocol_name="sticky"))
    state.synced(_synced(P0, P2), _anything)
    state.lose(forgets_id=True)

    previous = decode_previous_assignment(_subscription(state, "t").user_data or b"")
    assert each_partition(previous.previous_assignment) == (P0, P2)
    assert previous.generation == 5


@EACH_STEP
def test_a_rebalance_makes_a_member_rejoin_with_its_partitions(step: str) -> None:
    state = _stable(_cooperative(), P0)
    assert _answer(state, step, ErrorCode.REBALANCE_IN_PROGRESS) is Outcome.AGAIN
    assert (state.generation, state.member_id, state.owned) == (1, "me", {P0})


@EACH_STEP
def test_an_unknown_member_loses_everything_and_joins_as_a_new_one(step: str) -> None:
    state = _stable(_cooperative(), P0)
    assert _answer(state, step, ErrorCode.UNKNOWN_MEMBER_ID) is Outcome.LOST
    assert state.is_lost
    assert state.to_give_up(_anything) == {P0}
    assert state.join_request(["t"]).member_id == ""


@EACH_STEP
def test_an_illegal_generation_loses_everything_and_keeps_the_member_id(step: str) -> None:
    state = _stable(_state(), P0)
    assert _answer(state, step, ErrorCode.ILLEGAL_GENERATION) is Outcome.LOST
    assert state.is_lost
    assert state.member_id == "me"


@EACH_STEP
@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_moved_coordinator_is_looked_up_again(step: str, code: ErrorCode) -> None:
    state = _stable(_state(), P0)
    assert _answer(state, step, code) is Outcome.ELSEWHERE
    assert not state.is_lost


@EACH_STEP
@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REQUEST_TIMED_OUT])
def test_a_transient_error_is_retried_later(step: str, code: ErrorCode) -> None:
    assert _answer(_stable(_state(), P0), step, code) is Outcome.LATER


@EACH_STEP
@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.FENCED_INSTANCE_ID, CommitFailed),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, AuthorizationFailed),
        (ErrorCode.INVALID_SESSION_TIMEOUT, BrokerError),
        (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, BrokerError),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, BrokerError),
        (12345, BrokerError),
    ],
)
def test_a_fatal_error_is_raised(step: str, code: int, error: type[BrokerError]) -> None:
    with pytest.raises(error, match="group 'g'"):
        _answer(_stable(_state(), P0), step, code)


def test_a_partition_is_tagged_with_the_generation_that_assigned_it() -> None:
    state = _stable(_cooperative(), P0)
    _stable(state, P0, P1, generation=2)
    assert (state.owned_since(P0), state.owned_since(P1), state.owned_since(P2)) == (1, 2, None)
    _stable(state, P1, generation=3)
    _stable(state, P0, P1, generation=4)
    assert (state.owned_since(P0), state.owned_since(P1)) == (4, 2)


def test_a_leaving_member_sends_its_id_and_the_reason() -> None:
    request = _stable(_state()).leave_request("enough")
    assert (request.group_id, request.member_id) == ("g", "me")
    [identity] = request.members
    assert (identity.member_id, identity.group_instance_id, identity.reason) == ("me", None, "enough")


def test_a_malformed_subscription_counts_as_empty() -> None:
    told = Subscription(topics=("t",), user_data=b"u", owned_partitions=by_topic([P1]), generation_id=6, rack_id="near")
    members = members_of(
        _joined(
            members=(
                JoinGroupResponseMember(member_id="a", group_instance_id="s", metadata=encode_subscription(told)),
                JoinGroupResponseMember(member_id="b", metadata=b"?"),
            )
        )
    )
    assert [(one.id, one.instance_id, one.topics) for one in members] == [("a", "s", {"t"}), ("b", None, frozenset())]
    assert (members[0].owned, members[0].generation, members[0].rack, members[0].user_data) == ((P1,), 6, "near", b"u")


def test_a_member_needs_a_group() -> None:
    with pytest.raises(ValueError, match="needs a group"):
        _state(ConsumerConfig())
