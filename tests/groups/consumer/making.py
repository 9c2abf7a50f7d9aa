"""A consumer group with one-line operations, and a log to restore it from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.groups.making import Topics, environment

from ottla.core.errors import ErrorCode
from ottla.groups.actions import AnswerHeartbeat, Caller, MemberExpired, records_of
from ottla.groups.config import GroupConfig
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.coordinator import Coordinator
from ottla.groups.partitions import Partition, each_partition
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ottla.groups.actions import Action
    from ottla.groups.partitions import Assigned
    from ottla.groups.records import KeyValue

GROUP = "g"
REBALANCE_MS = 60_000
SESSION_MS = 45_000


def topic_partitions(partitions: Iterable[Partition]) -> tuple[TopicPartitions, ...]:
    return tuple(TopicPartitions(topic_id=each.topic_id, partitions=(each.number,)) for each in sorted(partitions))


class Client:
    """A conforming member: it reports its partitions, revokes as told, then takes the new ones."""

    def __init__(self, office: Office, name: str, **subscription: Any) -> None:
        self._office = office
        self.id = name
        self.epoch = 0
        self.owned: set[Partition] = set()
        self.told: Assigned | None = None
        self.last: ConsumerGroupHeartbeatResponse | None = None
        self._subscription = subscription

    def beat(self, now: int = 0, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat and apply the response; revocations are reported with the next one."""
        is_full = self.epoch == 0
        said = dict(self._subscription) if is_full else {}
        if is_full:
            said["rebalance_timeout_ms"] = REBALANCE_MS
        request = {
            "member_epoch": self.epoch,
            "instance_id": self._subscription.get("instance_id"),
            "topic_partitions": topic_partitions(self.owned),
            **said,
            **fields,
        }
        answer = self.last = self._office.beat(self.id, now=now, **request)
        if answer.error_code == ErrorCode.NONE:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.told = each_partition(answer.assignment.topic_partitions)
                self.owned = set(self.told)
        return answer

    def subscribe(self, now: int = 0, **subscription: Any) -> ConsumerGroupHeartbeatResponse:
        self._subscription |= subscription
        return self.beat(now, **subscription)


class Office:
    """A coordinator whose log is a list."""

    def __init__(self, partitions: dict[str, int] | None = None, **settings: Any) -> None:
        self.topics = Topics(partitions or {})
        self._config = GroupConfig(min_session_timeout_ms=1000, **settings)
        self.groups = Coordinator(environment(self._config, self.topics))
        self.log: list[KeyValue] = []
        self.can_write = True
        self._now = 0
        self.answers: dict[object, Any] = {}
        self.expired: list[MemberExpired] = []

    def client(self, name: str, *topics: str, **subscription: Any) -> Client:
        if topics:
            subscription["subscribed_topic_names"] = topics
        return Client(self, name, **subscription)

    def beat(self, member_id: str, *, now: int = 0, version: int = 1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(group_id=fields.pop("group_id", GROUP), member_id=member_id, **fields)
        caller = Caller("beat", version, member_id, "/127.0.0.1")
        self.carry_out(self.groups.consumers.heartbeat(request, caller, now))
        answer = self.answers.pop("beat")
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        return answer

    def carry_out(self, actions: Sequence[Action]) -> None:
        has_failed = False
        for action in actions:
            match action:
                case MemberExpired():
                    self.expired.append(action)
                case AnswerHeartbeat() if has_failed:
                    refused = ConsumerGroupHeartbeatResponse(
                        error_code=ErrorCode.NOT_COORDINATOR, member_epoch=0, heartbeat_interval_ms=0
                    )
                    self.answers[action.token] = refused
                case _ if hasattr(action, "response"):
                    self.answers[action.token] = action.response
                case _ if self.can_write:
                    self.log += records_of(action)
                    self.groups.table.apply(action)
                case _:
                    has_failed = True
                    self.carry_out(self.groups.append_failed(action, self._now))

    def expire(self, now: int) -> None:
        self._now = now
        self.carry_out(self.groups.table.expire(now))

    @property
    def group(self) -> ConsumerGroup:
        found = self.groups.table.get(GROUP)
        assert isinstance(found, ConsumerGroup)
        return found

    def reopened(self) -> Office:
        """Load the group from the log, as another broker would."""
        office = Office({})
        office.topics = self.topics
        office.groups = Coordinator(environment(self._config, self.topics))
        for key, value in self.log:
            office.groups.table.replay(key, value)
        office.log = list(self.log)
        return office


def settle(*clients: Client, rounds: int = 20) -> None:
    """Send heartbeats in turn until nothing changes."""
    for _ in range(rounds):
        before = [(each.epoch, frozenset(each.owned)) for each in clients]
        for each in clients:
            assert each.beat().error_code == ErrorCode.NONE
        if before == [(each.epoch, frozenset(each.owned)) for each in clients]:
            return
    raise AssertionError("the group never became stable")


def numbers(client: Client) -> list[int]:
    return sorted(partition.number for partition in client.owned)
