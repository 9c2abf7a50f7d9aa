"""Members of both protocols in one group: online migration in both directions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.groups.making import join_request, protocols, sync_request

from ottla.core.errors import ErrorCode
from ottla.groups.actions import Caller
from ottla.groups.classic import ClassicGroup
from ottla.groups.states import State
from ottla.wire.consumer_protocol import (
    Assignment,
    Subscription,
    by_topic,
    decode_assignment,
    each_partition,
    encode_assignment,
    encode_subscription,
)
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity

from .making import GROUP, Office, numbers, settle

if TYPE_CHECKING:
    from ottla.core.ids import TopicPartition

SESSION_MS = 10_000
REBALANCE_MS = 60_000


class Classic:
    """A cooperative member of the classic protocol."""

    def __init__(self, office: Office, name: str, instance: str | None = None) -> None:
        self._office = office
        self.name = name
        self.id = ""
        self.instance = instance
        self.generation = -1
        self.owned: tuple[TopicPartition, ...] = ()

    def join(self, now: int = 0, **fields: Any) -> Any:
        subscription = encode_subscription(Subscription(topics=("read",), owned_partitions=by_topic(self.owned)), 1)
        request = join_request(
            self.id,
            group_id=GROUP,
            group_instance_id=self.instance,
            protocols=fields.pop("protocols", protocols("range", metadata=subscription)),
            **fields,
        )
        self._office.carry_out(self._office.groups.join(request, Caller(self.name, 5, self.name, "/h"), now))
        return self.joined()

    def joined(self) -> Any:
        """The response, if it has arrived."""
        answer = self._office.answers.pop(self.name, None)
        if answer is not None and answer.member_id:
            self.id = answer.member_id
        if answer is not None and answer.error_code == ErrorCode.NONE:
            self.generation = answer.generation_id
        return answer

    def sync(self, now: int = 0, **fields: Any) -> Any:
        request = sync_request(self.id, self.generation, group_instance_id=self.instance, **fields)
        self._office.carry_out(self._office.groups.sync(request, self.name, now))
        return self.synced()

    def synced(self) -> Any:
        answer = self._office.answers.pop(self.name, None)
        if answer is not None and answer.error_code == ErrorCode.NONE and answer.assignment:
            self.owned = each_partition(decode_assignment(answer.assignment).assigned_partitions)
        return answer

    def beat(self, now: int = 0) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=GROUP, generation_id=self.generation, member_id=self.id, group_instance_id=self.instance
        )
        return self._office.groups.heartbeat(request, now)

    def follow(self, now: int = 0) -> None:
        """Behave like a client: send a heartbeat, and rejoin if told to."""
        if self.beat(now) is ErrorCode.REBALANCE_IN_PROGRESS:
            assert self.join(now).error_code == ErrorCode.NONE
            assert self.sync(now).error_code == ErrorCode.NONE

    def leave(self) -> Any:
        member = MemberIdentity(member_id=self.id, group_instance_id=self.instance)
        request = LeaveGroupRequest(group_id=GROUP, members=(member,))
        self._office.carry_out(self._office.groups.leave(request, Caller("leave", 5), 0))
        return self._office.answers.pop("leave").members[0].error_code

    @property
    def numbers(self) -> list[int]:
        return [at.partition for at in self.owned]


def one_classic(partitions: int = 4, **settings: Any) -> tuple[Office, Classic]:
    """A classic group with one member, ann, that owns everything."""
    office = Office({"read": partitions}, **settings)
    ann = Classic(office, "ann")
    ann.join()
    ann.join()
    whole = by_topic(_all(partitions))
    ann.sync(assignments={ann.id: encode_assignment(Assignment(assigned_partitions=whole), 1)})
    assert len(ann.owned) == partitions
    return office, ann


def _all(partitions: int) -> list[TopicPartition]:
    from ottla.core.ids import TopicPartition

    return [TopicPartition("read", number) for number in range(partitions)]


def follow_all(*members: Any) -> None:
    for _ in range(8):
        for member in members:
            member.follow() if isinstance(member, Classic) else member.beat()


def test_a_classic_group_becomes_a_consumer_group_when_the_first_new_member_joins() -> None:
    office, ann = one_classic()
    generation = ann.generation
    bob = office.client("bob", "read")

    assert bob.beat().error_code == ErrorCode.NONE

    assert office.group.state is State.RECONCILING
    assert bob.epoch == generation + 1
    assert len(ann.numbers) == 4
    assert bob.owned == set()  # ann has not been told yet
    follow_all(ann, bob)
    assert sorted(ann.numbers + numbers(bob)) == [0, 1, 2, 3]
    assert len(ann.numbers) == len(bob.owned) == 2
    assert office.group.state is State.STABLE


def test_a_consumer_group_becomes_classic_again_when_the_last_new_member_leaves() -> None:
    office, ann = one_classic()
    bob = office.client("bob", "read")
    bob.beat()
    follow_all(ann, bob)

    assert office.beat("bob", member_epoch=-1).error_code == ErrorCode.NONE

    group = office.groups.table.get(GROUP)
    assert isinstance(group, ClassicGroup)
    assert group.state is State.PREPARING_REBALANCE
    assert ann.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    answer = ann.join()
    assert (answer.error_code, answer.leader) == (ErrorCode.NONE, ann.id)
    whole = encode_assignment(Assignment(assigned_partitions=by_topic(_all(4))), 1)
    ann.sync(assignments={ann.id: whole})
    assert ann.numbers == [0, 1, 2, 3]


def test_records_of_the_old_group_type_are_removed_before_those_of_the_new() -> None:
    office, ann = one_classic()
    bob = office.client("bob", "read")
    bob.beat()
    follow_all(ann, bob)
    upgraded = office.reopened()
    assert upgraded.group.state_of_members.records == office.group.state_of_members.records

    office.beat("bob", member_epoch=-1)
    downgraded = office.reopened().groups.table.get(GROUP)
    assert isinstance(downgraded, ClassicGroup)
    assert [member.id for member in downgraded.members] == [ann.id]
    assert downgraded.state is State.STABLE


def test_waiting_members_of_the_classic_group_are_told_to_rejoin() -> None:
    office, _ann = one_classic()
    cyd = Classic(office, "cyd")
    cyd.join()
    cyd.join()
    assert cyd.joined() is None  # waits for ann
    office.client("bob", "read").beat()
    assert cyd.joined().error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert cyd.join().error_code == ErrorCode.NONE


def test_a_classic_member_can_join_a_consumer_group() -> None:
    office = Office({"read": 4})
    bob = office.client("bob", "read")
    bob.beat()
    ann = Classic(office, "ann")

    assert ann.join().error_code == ErrorCode.MEMBER_ID_REQUIRED
    answer = ann.join()
    assert (answer.error_code, answer.leader, answer.protocol_name) == (ErrorCode.NONE, "", "range")
    assert ann.sync().error_code == ErrorCode.NONE
    assert ann.numbers == []
    follow_all(ann, bob)
    assert len(ann.numbers) == len(bob.owned) == 2


def test_a_classic_member_leaves_a_consumer_group() -> None:
    office, ann = one_classic()
    bob = office.client("bob", "read")
    bob.beat()
    follow_all(ann, bob)
    assert ann.leave() == ErrorCode.NONE
    assert ann.leave() == ErrorCode.UNKNOWN_MEMBER_ID
    settle(bob)
    assert numbers(bob) == [0, 1, 2, 3]


def test_a_new_member_cannot_leave_with_the_classic_protocol() -> None:
    office, ann = one_classic()
    office.client("bob", "read").beat()
    intruder = Classic(office, "bob")
    intruder.id = "bob"
    assert intruder.leave() == ErrorCode.UNKNOWN_MEMBER_ID
    assert intruder.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert ann.beat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_classic_member_with_another_generation_is_refused() -> None:
    office, ann = one_classic()
    office.client("bob", "read").beat()
    ann.generation += 1
    assert ann.beat() is ErrorCode.ILLEGAL_GENERATION
    assert ann.sync().error_code == ErrorCode.ILLEGAL_GENERATION
    assert office.group.check_commit_of(ann.id, 0, b"x", 0) is ErrorCode.ILLEGAL_GENERATION


def test_a_classic_member_has_its_own_session_timeout() -> None:
    office, ann = one_classic()
    bob = office.client("bob", "read")
    bob.beat(now=5000)
    office.expire(15_000)
    assert [(one.member_id, one.missed) for one in office.expired] == [(ann.id, "heartbeat")]


def test_a_classic_member_that_does_not_rejoin_in_time_is_dropped() -> None:
    office, ann = one_classic()
    office.client("bob", "read").beat()
    for now in range(0, REBALANCE_MS, 5000):
        assert ann.beat(now) is ErrorCode.REBALANCE_IN_PROGRESS
        office.beat("bob", now=now, member_epoch=2, topic_partitions=())
    office.expire(REBALANCE_MS)
    assert [(one.member_id, one.missed) for one in office.expired] == [(ann.id, "rejoin")]


def test_a_classic_member_that_never_asks_for_its_assignment_is_dropped() -> None:
    office = Office({"read": 1})
    bob = office.client("bob", "read")
    bob.beat()
    ann = Classic(office, "ann")
    ann.join()
    ann.join()
    for now in range(0, REBALANCE_MS, 5000):
        bob.beat(now)
        ann.beat(now)
    office.expire(REBALANCE_MS)
    assert ("sync", ann.id) in [(one.missed, one.member_id) for one in office.expired]


def test_an_empty_group_takes_the_type_of_the_next_member() -> None:
    office = Office({"read": 1})
    office.client("bob", "read").beat()
    office.beat("bob", member_epoch=-1)
    ann = Classic(office, "ann")
    ann.join()
    assert ann.join().leader == ann.id
    assert isinstance(office.groups.table.get(GROUP), ClassicGroup)
    ann.leave()
    office.client("bob", "read").beat()
    assert office.group.state is State.STABLE
    assert office.reopened().group.state_of_members.records == office.group.state_of_members.records


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_a_classic_group_stays_classic_if_the_policy_forbids_migration(policy: str) -> None:
    office, ann = one_classic(consumer_migration_policy=policy)
    written = list(office.log)
    assert office.client("bob", "read").beat().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert office.log == written
    assert ann.beat() is ErrorCode.NONE


def test_a_consumer_group_stays_one_if_the_policy_forbids_migration() -> None:
    office, ann = one_classic(consumer_migration_policy="upgrade")
    bob = office.client("bob", "read")
    bob.beat()
    follow_all(ann, bob)
    office.beat("bob", member_epoch=-1)
    follow_all(ann)
    assert office.group.state is State.STABLE
    assert ann.numbers == [0, 1, 2, 3]


def test_a_group_of_another_protocol_type_is_not_migrated() -> None:
    office = Office({"read": 1})
    worker = Classic(office, "worker")
    worker.join(protocol_type="connect", protocols=protocols("x", metadata=b"whatever"))
    worker.join(protocol_type="connect", protocols=protocols("x", metadata=b"whatever"))
    assert office.client("bob", "read").beat().error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_migration_that_cannot_be_written_has_no_effect() -> None:
    office, ann = one_classic()
    office.can_write = False
    assert office.client("bob", "read").beat().error_code == ErrorCode.NOT_COORDINATOR
    assert ann.beat() is ErrorCode.NONE
    office.can_write = True
    bob = office.client("bob", "read")
    bob.beat()
    follow_all(ann, bob)
    before = dict(office.group.state_of_members.records)
    office.can_write = False
    assert office.beat("bob", member_epoch=-1).error_code == ErrorCode.NOT_COORDINATOR
    assert office.group.state_of_members.records == before
    assert bob.beat().error_code == ErrorCode.NONE


def test_a_static_member_may_return_with_the_other_protocol() -> None:
    office = Office({"read": 2})
    office.client("old", "read", instance_id="A").beat()
    office.beat("old", member_epoch=-2, instance_id="A")
    office.client("bob", "read").beat()
    ann = Classic(office, "ann", instance="A")
    assert ann.join().error_code == ErrorCode.NONE
    ann.sync()
    assert len(ann.numbers) == 1
    again = office.client("new", "read", instance_id="A")
    assert again.beat().error_code == ErrorCode.NONE
    assert ann.beat() is ErrorCode.FENCED_INSTANCE_ID


def test_the_last_new_member_may_return_as_a_classic_one() -> None:
    office = Office({"read": 2})
    office.client("bob", "read", instance_id="B").beat()
    cyd = Classic(office, "cyd")
    cyd.join()
    cyd.join()
    cyd.sync()
    office.beat("bob", member_epoch=-2, instance_id="B")
    bob = Classic(office, "bob", instance="B")
    bob.join()
    assert isinstance(office.groups.table.get(GROUP), ClassicGroup)
    cyd.join()
    bob.joined()
    assert cyd.generation == bob.generation


def test_describe_shows_the_group_type() -> None:
    office, _ann = one_classic()
    assert office.groups.consumers.describe(GROUP).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert office.groups.describe(GROUP, 6).error_code == ErrorCode.NONE
    office.client("bob", "read").beat()
    described = office.groups.consumers.describe(GROUP)
    assert {member.client_id: member.member_type for member in described.members} == {"ann": 0, "bob": 1}
    classic = office.groups.describe(GROUP, 6)
    assert (classic.error_code, classic.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert office.groups.describe(GROUP, 5).error_code == ErrorCode.NONE
