"""The state of a group, for waiting in tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.groups.states import State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.broker.broker import Broker
    from ottla.core.ids import TopicPartition


def committed(broker: Broker, group_id: str) -> dict[TopicPartition, int]:
    return {at: value.offset for at, value in broker.groups.rules.table.offsets(group_id)}


def lags(broker: Broker, group_id: str, topics: Iterable[str] = ()) -> dict[TopicPartition, int]:
    """The group's lag, in these topics or in those it has committed for."""
    offsets = committed(broker, group_id)
    found: dict[TopicPartition, int] = {}
    for name in set(topics) or {at.topic for at in offsets}:
        state = broker.topics.by_name.get(name)
        for partition in state.partitions if state is not None else ():
            read_until = offsets.get(partition.at, partition.log.start_offset)
            found[partition.at] = max(partition.high_watermark - read_until, 0)
    return found


def not_stable(broker: Broker, group_id: str, members: int) -> str | None:
    """Why the group is not stable with this number of members; None if it is."""
    group = broker.groups.rules.table.get(group_id)
    if group is None and not members:
        return None
    if group is None:
        others = sorted(one.group_id for one in broker.groups.rules.table)
        return f"no group {group_id!r}; existing: {others}" if others else f"no group {group_id!r}"
    there = group.member_names
    wanted = State.STABLE if members else State.EMPTY
    if group.state is wanted and len(there) == members:
        return None
    return f"group {group_id!r} is {group.state} with {len(there)} members {there}, expected {wanted} with {members}"


def lagging(broker: Broker, group_id: str, topics: Iterable[str]) -> str | None:
    """The group's lag; None if it is zero."""
    found = lags(broker, group_id, topics)
    if not found:
        return f"group {group_id!r} has no committed offsets, and no topic was named"
    behind = {str(at): lag for at, lag in sorted(found.items()) if lag}
    return f"group {group_id!r} is behind by {behind}" if behind else None
