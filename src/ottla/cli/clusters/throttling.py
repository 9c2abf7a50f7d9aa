"""Throttling reassignments with Kafka's replication throttle configs, and removing them afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.client.admin.configs import ConfigResource
from ottla.client.errors import BrokerError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.client.admin.admin import Admin
    from ottla.client.view import PartitionView
    from ottla.core.ids import TopicPartition

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LEADERS: Final = "leader.replication.throttled.replicas"
FOLLOWERS: Final = "follower.replication.throttled.replicas"


def throttled_topics(
    before: Mapping[TopicPartition, PartitionView], moves: Mapping[TopicPartition, Sequence[int]]
) -> dict[str, dict[str, str]]:
    """The throttle configs of each topic: current replicas are leaders, new ones are followers."""
    leaders: dict[str, list[str]] = {}
    followers: dict[str, list[str]] = {}
    for where, target in moves.items():
        held = before[where].replicas
        leaders.setdefault(where.topic, []).extend(f"{where.partition}:{node}" for node in held)
        followers.setdefault(where.topic, []).extend(f"{where.partition}:{node}" for node in target if node not in held)
    return {name: {LEADERS: ",".join(leaders[name]), FOLLOWERS: ",".join(followers[name])} for name in leaders}


async def throttle(admin: Admin, moves: Mapping[TopicPartition, Sequence[int]], rate: int) -> None:
    """Set the throttle; call it before the reassignments start."""
    names = {where.topic for where in moves}
    topics = [topic for topic in (await admin.describe_topics(names)).values() if not isinstance(topic, BrokerError)]
    before = {
        where: topic.partitions[where.partition]
        for topic in topics
        for where in moves
        if where.topic == topic.name and where.partition in topic.partitions
    }
    for each in (await admin.describe_cluster()).brokers:
        rates = {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)}
        await admin.alter_configs(ConfigResource.broker(each.node_id), rates)
    known = {where: target for where, target in moves.items() if where in before}
    for name, configs in throttled_topics(before, known).items():
        await admin.alter_configs(ConfigResource.topic(name), configs)


async def unthrottle(admin: Admin) -> None:
    """Remove the throttle from every broker and topic that has it."""
    for each in (await admin.describe_cluster()).brokers:
        await _delete(admin, ConfigResource.broker(each.node_id), (LEADER_RATE, FOLLOWER_RATE))
    for name in await admin.list_topics(include_internal=True):
        await _delete(admin, ConfigResource.topic(name), (LEADERS, FOLLOWERS))


async def _delete(admin: Admin, resource: ConfigResource, names: Sequence[str]) -> None:
    entries = await admin.describe_configs(resource)
    if set_here := [name for name in names if name in entries and not entries[name].is_default]:
        await admin.alter_configs(resource, {}, delete=set_here)
