"""A balanced assignment with as few moves as possible."""

from __future__ import annotations

from collections import defaultdict
from heapq import heapify, heappop, heappush, heapreplace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from ottla.groups.partitions import Partition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.groups.consumer.assignors import Subscriber
    from ottla.groups.partitions import Assigned


def assign_uniformly(members: Mapping[str, Subscriber], partitions: Mapping[bytes, int]) -> dict[str, Assigned]:
    every = [Partition(topic_id, index) for topic_id, count in sorted(partitions.items()) for index in range(count)]
    kept = _kept(members, partitions)
    owned = {partition for each in kept.values() for partition in each}
    free = [partition for partition in every if partition not in owned]
    if len({member.topic_ids for member in members.values()}) <= 1:
        _level(kept, free, len(every))
    else:
        _balance(members, kept, free)
    return {member_id: frozenset(each) for member_id, each in kept.items()}


def _kept(members: Mapping[str, Subscriber], partitions: Mapping[bytes, int]) -> dict[str, list[Partition]]:
    """The partitions that members may keep: existing, subscribed, and not owned by another."""
    taken: set[Partition] = set()
    kept: dict[str, list[Partition]] = {}
    for member_id, member in sorted(members.items()):
        kept[member_id] = [
            partition
            for partition in sorted(member.assigned)
            if partition.topic_id in member.topic_ids
            and partition.number < partitions.get(partition.topic_id, 0)
            and partition not in taken
        ]
        taken.update(kept[member_id])
    return kept


def _level(kept: dict[str, list[Partition]], free: list[Partition], total: int) -> None:
    """Assign if all members subscribe to the same topics: all get the same number, and some one more."""
    least, left_over = divmod(total, len(kept))
    # Members with more keep the extra ones, so that these need not move.
    by_load = sorted(kept, key=lambda member_id: (-len(kept[member_id]), member_id))
    room: list[tuple[str, int]] = []
    for number, member_id in enumerate(by_load):
        quota = least + (number < left_over)
        free += kept[member_id][quota:]
        del kept[member_id][quota:]
        room.append((member_id, quota - len(kept[member_id])))
    for member_id, count in room:
        kept[member_id] += free[:count]
        del free[:count]


def _balance(members: Mapping[str, Subscriber], kept: dict[str, list[Partition]], free: list[Partition]) -> None:
    """Assign if members subscribe to different topics: the subscriber with the fewest partitions gets the next one of a
    topic.
    """
    readers: dict[bytes, list[str]] = defaultdict(list)
    for member_id, member in sorted(members.items()):
        for topic_id in member.topic_ids:
            readers[topic_id].append(member_id)
    # Topics with few subscribers first: the others can compensate.
    by_choice = sorted(free, key=lambda each: (len(readers[each.topic_id]), each))
    for topic_id, of_topic in groupby(by_choice, attrgetter("topic_id")):
        by_load = [(len(kept[member_id]), member_id) for member_id in readers[topic_id]]
        heapify(by_load)
        for partition in of_topic:
            load, member_id = by_load[0]
            kept[member_id].append(partition)
            heapreplace(by_load, (load + 1, member_id))
    # Terminates, because each move brings two loads closer together.
    while any([_even_out(topic_id, readers[topic_id], kept) for topic_id in sorted(readers)]):  # noqa: C419 - all of them
        pass


def _even_out(topic_id: bytes, readers: list[str], kept: dict[str, list[Partition]]) -> bool:
    """Move partitions of the topic from the subscribers with the most to those with the fewest. Returns whether any
    moved.
    """
    mine = {who: [each for each in kept[who] if each.topic_id == topic_id] for who in readers}
    givers = [(-len(kept[who]), who) for who in readers if mine[who]]
    takers = [(len(kept[who]), who) for who in readers]
    heapify(givers)
    heapify(takers)
    has_moved = False
    while givers:
        most, giver = heappop(givers)
        least, taker = takers[0]
        if -most != len(kept[giver]):  # it has received one since
            heappush(givers, (-len(kept[giver]), giver))
        elif least != len(kept[taker]):  # it has lost one since
            heapreplace(takers, (len(kept[taker]), taker))
            heappush(givers, (most, giver))
        elif -most - least <= 1:
            break
        else:
            moved = mine[giver].pop()
            kept[giver].remove(moved)
            kept[taker].append(moved)
            heapreplace(takers, (least + 1, taker))
            if mine[giver]:
                heappush(givers, (most + 1, giver))
            has_moved = True
    return has_moved
