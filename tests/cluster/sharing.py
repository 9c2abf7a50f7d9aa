"""Members of share groups in a cluster, which send requests to the responsible node."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from tests.broker.raw_client import RawClient
from tests.broker.sharing import Delivered, ShareMember, set_group_config

from ottla.core.errors import ErrorCode
from ottla.share.formats import StateKey
from ottla.share.records import state_partition_for
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.share_acknowledge import ShareAcknowledgeRequest

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    from ottla.broker.partition import Partition
    from ottla.testing import EphemeralCluster
    from ottla.testing.cluster_node import ClusterNode

    T = TypeVar("T")

GROUP = "workers"
TOPIC = "jobs"
STATE = "__share_group_state"
PATIENCE_S = 20.0


def until(look: Callable[[], T | None]) -> T:
    """Poll until there is a result, and return it."""
    give_up_at_s = time.monotonic() + PATIENCE_S
    while (found := look()) is None:
        assert time.monotonic() < give_up_at_s
    return found


class Asking:
    def __init__(self, cluster: EphemeralCluster, stack: ExitStack) -> None:
        self.cluster = cluster
        self._stack = stack
        self._clients: dict[ClusterNode, RawClient] = {}

    def at(self, node: ClusterNode) -> RawClient:
        if node not in self._clients:
            self._clients[node] = self._stack.enter_context(RawClient(node.bootstrap_servers))
        return self._clients[node]

    @property
    def some_node(self) -> ClusterNode:
        return next(node for node in self.cluster.nodes if node.is_running)

    @property
    def topic_id(self) -> bytes:
        return self.some_node.broker.topics.by_name[TOPIC].raw_id

    def coordinator(self, group: str = GROUP) -> RawClient:
        """The coordinator of a group, once it is ready."""

        def ready() -> RawClient | None:
            request = FindCoordinatorRequest(key_type=0, coordinator_keys=(group,))
            [found] = self.at(self.some_node).ask(request).coordinators
            if found.error_code != ErrorCode.NONE or not self.cluster.nodes[found.node_id].is_running:
                return None
            client = self.at(self.cluster.nodes[found.node_id])
            is_ready = self.described(client, group)[0] in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND)
            return client if is_ready else None

        return until(ready)

    def described(self, client: RawClient, group: str = GROUP) -> tuple[int, dict[int, tuple[int, int]]]:
        """The error, and start offset and lag by partition."""
        asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
        [found] = client.ask(DescribeShareGroupOffsetsRequest(groups=(asked,))).groups
        return found.error_code, {
            each.partition_index: (each.start_offset, each.lag) for topic in found.topics for each in topic.partitions
        }

    def member(self, group: str = GROUP) -> ShareMember:
        """A joined member, which fetches from the leader of the topic's first partition."""
        coordinator = self.coordinator(group)
        assert set_group_config(coordinator, group, share_auto_offset_reset="earliest") == ErrorCode.NONE
        member = ShareMember(coordinator, group, TOPIC, self.topic_id)
        self.follow(member)
        return member

    def follow(self, member: ShareMember) -> None:
        """The member with a new session at the current leader."""
        member.client = self.at(self.cluster.leader_of(TOPIC))
        member.session_epoch = 0

    def fetch(self, member: ShareMember) -> Delivered:
        """The next records: once the leader has loaded the group's state, and knows what is committed."""

        def fetched() -> Delivered | None:
            answer = member.client.receive(member.send_fetch(wait_ms=100))
            assert answer.error_code == ErrorCode.NONE, answer
            parts = [part for topic in answer.responses for part in topic.partitions]
            if any(part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER for part in parts):
                self.follow(member)
                return None
            assert all(part.error_code == ErrorCode.NONE for part in parts), parts
            delivered = Delivered(parts[0]) if parts else None
            return delivered if delivered is not None and delivered.offsets else None

        return until(fetched)

    def leave(self, member: ShareMember) -> None:
        closing = ShareAcknowledgeRequest(group_id=member.group, member_id=member.id, share_session_epoch=-1, topics=())
        assert member.client.ask(closing).error_code == ErrorCode.NONE
        member.client = self.coordinator(member.group)
        assert member.heartbeat(epoch=-1).error_code == ErrorCode.NONE

    # State of records

    def state_leader(self, group: str) -> ClusterNode:
        return self.cluster.leader_of(STATE, self._state_index(group))

    def state_partition(self, node: ClusterNode, group: str) -> Partition:
        return node.broker.topics.partition(STATE, self._state_index(group))

    def _state_index(self, group: str) -> int:
        key = StateKey(group_id=group, topic_id=self.topic_id, partition=0)
        return state_partition_for(key, len(self.cluster.nodes))
