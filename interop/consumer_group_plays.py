"""Scripted scenarios of consumer group members (KIP-848), run against Apache Kafka and Ottla.

A play asks and notes what is answered. Topics are noted by their names, and what a member is assigned by how much it
is: which of equal partitions it gets is each broker's own choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.core.errors import ErrorCode
from ottla.wire.consumer_protocol import Subscription, decode_assignment, encode_subscription
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.wire.messages.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from interop.raw_client import RawClient

TOPIC = "read"
PARTITIONS = 4


class Play:
    """One group at one broker."""

    def __init__(self, client: RawClient, group_id: str) -> None:
        self.group_id = group_id
        self.notes: list[Any] = []
        self._client = client
        self._names = {
            topic.topic_id: topic.name for topic in client.ask(MetadataRequest(topics=None), 12).topics if topic.name
        }
        self._epochs: dict[str, int] = {}
        self._owned: dict[str, tuple[TopicPartitions, ...]] = {}
        self._classic: dict[str, tuple[str, int]] = {}

    # ── The new protocol ─────────────────────────────────────────────────────────────────────────────────────

    def join(self, who: str, **fields: Any) -> None:  # noqa: ANN401
        self._epochs[who], self._owned[who] = 0, ()
        joining: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": (TOPIC,)}
        self.beat(who, **{**joining, **fields})

    def beat(self, who: str, **fields: Any) -> None:  # noqa: ANN401
        said: dict[str, Any] = {
            "member_id": who,
            "member_epoch": self._epochs.get(who, 0),
            "topic_partitions": self._owned.get(who, ()),
        }
        request = ConsumerGroupHeartbeatRequest(group_id=self.group_id, **{**said, **fields})
        answer = self._client.ask(request, 1)
        assigned = None
        if answer.error_code == ErrorCode.NONE:
            self._epochs[who] = answer.member_epoch
            if answer.assignment is not None:
                self._owned[who] = answer.assignment.topic_partitions
                assigned = self._sizes(answer.assignment.topic_partitions)
        code, text = ErrorCode(answer.error_code).name, (answer.error_message or "").replace(self.group_id, "GROUP")
        self.notes.append((who, code, text, answer.member_epoch, answer.heartbeat_interval_ms, assigned))

    def settle(self, *members: str) -> None:
        """Send unrecorded heartbeats until the group is stable."""
        notes, self.notes = self.notes, []
        for _ in range(6):
            for who in members:
                self.follow(who) if who in self._classic else self.beat(who)
        self.notes = notes

    # ── The classic one ──────────────────────────────────────────────────────────────────────────────────────

    def join_classic(self, who: str, *, name: str = "range") -> None:
        """Join until it is a member with an assignment."""
        member_id, _ = self._classic.get(who, ("", -1))
        metadata = encode_subscription(Subscription(topics=(TOPIC,)), 1)
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name=name, metadata=metadata),),
        )
        answer = self._client.ask(request, 9)
        self.notes.append((who, "join", ErrorCode(answer.error_code).name, answer.generation_id, answer.leader != ""))
        self._classic[who] = answer.member_id, answer.generation_id
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.join_classic(who, name=name)
        elif answer.error_code == ErrorCode.NONE:
            self.sync_classic(who, name=name)

    def sync_classic(self, who: str, *, name: str = "range") -> None:
        member_id, generation = self._classic[who]
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=generation,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name=name,
            assignments=(),
        )
        answer = self._client.ask(request, 5)
        topics = decode_assignment(answer.assignment).assigned_partitions if answer.assignment else ()
        sizes = {topic.topic: len(topic.partitions) for topic in topics}
        self.notes.append((who, "sync", ErrorCode(answer.error_code).name, sizes))

    def beat_classic(self, who: str) -> int:
        member_id, generation = self._classic[who]
        request = HeartbeatRequest(group_id=self.group_id, generation_id=generation, member_id=member_id)
        error = self._client.ask(request, 4).error_code
        self.notes.append((who, "beat", ErrorCode(error).name))
        return error

    def follow(self, who: str) -> None:
        if self.beat_classic(who) == ErrorCode.REBALANCE_IN_PROGRESS:
            self.join_classic(who)

    def leave_classic(self, who: str) -> None:
        member = MemberIdentity(member_id=self._classic[who][0])
        answer = self._client.ask(LeaveGroupRequest(group_id=self.group_id, members=(member,)), 5)
        self.notes.append((who, "leave", [ErrorCode(each.error_code).name for each in answer.members]))

    # ── Offsets and administrators ───────────────────────────────────────────────────────────────────────────

    def commit(self, who: str, epoch: int, version: int = 9) -> None:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
        topic = OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,))
        request = OffsetCommitRequest(
            group_id=self.group_id, generation_id_or_member_epoch=epoch, member_id=who, topics=(topic,)
        )
        answer = self._client.ask(request, version)
        self.notes.append((who, "commit", ErrorCode(answer.topics[0].partitions[0].error_code).name))

    def fetch(self, who: str | None, epoch: int) -> None:
        topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(0,))
        group = OffsetFetchRequestGroup(group_id=self.group_id, member_id=who, member_epoch=epoch, topics=(topic,))
        answer = self._client.ask(OffsetFetchRequest(groups=(group,)), 9)
        self.notes.append((who, "fetch", ErrorCode(answer.groups[0].error_code).name))

    def describe(self) -> None:
        request = ConsumerGroupDescribeRequest(group_ids=(self.group_id,), include_authorized_operations=False)
        [group] = self._client.ask(request, 1).groups
        members = sorted(
            (
                member.client_id,
                member.instance_id,
                member.member_epoch,
                member.member_type,
                member.subscribed_topic_names,
                member.subscribed_topic_regex,
                self._sizes(member.assignment.topic_partitions),
                self._sizes(member.target_assignment.topic_partitions),
            )
            for member in group.members
        )
        about = (group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name)
        self.notes.append(("described", ErrorCode(group.error_code).name, about, members))

    def describe_classic(self) -> None:
        [group] = self._client.ask(DescribeGroupsRequest(groups=(self.group_id,)), 6).groups
        self.notes.append(("described as classic", ErrorCode(group.error_code).name, group.group_state))

    def list(self, *types: str) -> None:
        answer = self._client.ask(ListGroupsRequest(types_filter=types), 5)
        mine = [group for group in answer.groups if group.group_id == self.group_id]
        self.notes.append(("listed", [(one.protocol_type, one.group_state, one.group_type) for one in mine]))

    def _sizes(self, topics: Any) -> dict[str, int]:  # noqa: ANN401
        return {self._names.get(topic.topic_id, "gone"): len(topic.partitions) for topic in topics}


def members_come_and_go(play: Play) -> None:
    play.join("ann")
    play.beat("ann")
    play.describe()
    play.join("bob")
    play.describe()
    play.beat("ann")
    play.beat("ann", topic_partitions=None)
    play.beat("bob")
    play.describe()
    play.beat("ann")
    play.beat("bob")
    play.describe()
    play.list()
    play.list("consumer")
    play.list("classic")
    play.describe_classic()
    play.beat("ann", member_epoch=-1)
    play.describe()
    play.beat("ann", member_epoch=-1)
    play.beat("bob")
    play.beat("bob", member_epoch=-1)
    play.describe()
    play.list()


def epochs_are_checked(play: Play) -> None:
    play.beat("ann", member_epoch=1)
    play.beat("ann", member_epoch=-1)
    play.join("ann")
    play.join("ann")
    play.beat("ann", member_epoch=2)
    play.beat("bob", member_epoch=1)
    play.join("bob")
    play.settle("ann", "bob")
    play.beat("bob", member_epoch=0)
    play.beat("ann", member_epoch=1, topic_partitions=())
    play.beat("ann", member_epoch=7)


def static_members(play: Play) -> None:
    play.join("ann", instance_id="A")
    play.join("ann-2", instance_id="A")
    play.beat("ann", member_epoch=-2, instance_id="A")
    play.describe()
    play.join("ann-2", instance_id="A")
    play.beat("ann", member_epoch=1, instance_id="A")
    play.beat("ann-2", member_epoch=1, instance_id="B")
    play.beat("ann-2", member_epoch=-2, instance_id="B")
    play.beat("ann", member_epoch=-1, instance_id="A")
    play.beat("ann-2", instance_id="A")
    play.beat("ann-2", member_epoch=-1, instance_id="A")
    play.describe()


def what_makes_no_sense(play: Play) -> None:
    play.join("", topic_partitions=())
    play.join("ann", rebalance_timeout_ms=-1)
    play.join("ann", topic_partitions=None)
    play.join("ann", subscribed_topic_names=None)
    play.join("ann", instance_id="")
    play.join("ann", rack_id="")
    play.join("ann", server_assignor="none")
    play.beat("ann", member_epoch=-3)
    play.beat("ann", member_epoch=-2)
    play.beat("", member_epoch=-1)
    play.describe()
    play.join("ann", server_assignor="range")
    play.describe()


def offsets_are_members_own(play: Play) -> None:
    play.commit("ann", 1)
    play.join("ann")
    play.commit("ann", 1)
    play.commit("ann", 2)
    play.commit("ann", 1, version=8)
    play.commit("bob", 1)
    play.commit("", -1)
    play.fetch(None, -1)
    play.fetch("ann", 1)
    play.fetch("ann", 2)
    play.fetch("bob", 1)
    play.join("bob")
    play.settle("ann", "bob")
    play.beat("ann", member_epoch=-1)
    play.beat("bob", member_epoch=-1)
    play.commit("", -1)


def both_protocols_in_one_group(play: Play) -> None:
    play.join("bob")
    play.join_classic("ann")
    play.beat_classic("ann")
    play.beat("bob")
    play.beat("bob")
    play.beat_classic("ann")
    play.settle("bob", "ann")
    play.describe()
    play.beat_classic("ann")
    play.leave_classic("ann")
    play.settle("bob")
    play.describe()


def a_classic_group_changes_its_kind(play: Play) -> None:
    play.join_classic("ann")
    play.describe()
    play.list()
    play.join("bob")
    play.list()
    play.beat_classic("ann")
    play.settle("bob", "ann")
    play.describe()
    play.beat("bob", member_epoch=-1)
    play.list()
    play.describe_classic()


PLAYS = [
    members_come_and_go,
    epochs_are_checked,
    static_members,
    what_makes_no_sense,
    offsets_are_members_own,
    both_protocols_in_one_group,
    a_classic_group_changes_its_kind,
]
