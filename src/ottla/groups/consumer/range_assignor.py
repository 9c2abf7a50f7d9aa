"""A contiguous range of each topic's partitions per member, with the same member order for every topic.

Members that subscribe to the same topics with equal partition counts get the same partitions of each (co-partitioning).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.groups.partitions import Partition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.groups.consumer.assignors import Subscriber
    from ottla.groups.partitions import Assigned


def assign_ranges(members: Mapping[str, Subscriber], partitions: Mapping[bytes, int]) -> dict[str, Assigned]:
    assigned: dict[str, set[Partition]] = {member_id: set() for member_id in members}
    in_order = sorted(members, key=lambda member_id: _place(member_id, members[member_id]))
    for topic_id, count in partitions.items():
        readers = [member_id for member_id in in_order if topic_id in members[member_id].topic_ids]
        start = 0
        for number, member_id in enumerate(readers):
            end = start + count // len(readers) + (number < count % len(readers))
            assigned[member_id].update(Partition(topic_id, index) for index in range(start, end))
            start = end
    return {member_id: frozenset(each) for member_id, each in assigned.items()}


def _place(member_id: str, member: Subscriber) -> tuple[bool, str]:
    """The sort key of a member: static members first, by their instance id."""
    instance_id = member.instance_id
    return instance_id is None, member_id if instance_id is None else instance_id
