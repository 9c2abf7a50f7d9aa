"""Resetting the offsets of a group: preview and execution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from ottla.broker.interfaces.partition_facts import bounds
from ottla.core.errors import UnknownTopicOrPartition
from ottla.core.security import AclOperation, ResourceType
from ottla.http.consumer_groups.offsets import GivenOffset, Place, checked, commit, committed_offsets
from ottla.http.consumer_groups.share_groups import is_share_group, move_share_group, share_offsets
from ottla.http.framework.endpoints import Endpoint
from ottla.http.framework.models import RequestStruct, Struct, TimestampMs
from ottla.http.framework.problems import BadRequest
from ottla.http.records.messages import offset_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.http.framework.endpoints import Call

Distance = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]


class Reset(RequestStruct, frozen=True, kw_only=True):
    to: Literal["earliest", "latest", "timestamp", "by", "offsets"]
    topics: tuple[str, ...] | None = None
    """Reset all partitions of these topics; without it, the partitions with committed offsets."""
    timestamp: TimestampMs | None = None
    """With `to: timestamp`: to the first message at or after this time."""
    by: Distance | None = None
    """With `to: by`: this many messages forward, or back if negative."""
    offsets: tuple[GivenOffset, ...] | None = None
    """With `to: offsets`: these offsets, such as from `GET …/offsets`."""
    dry_run: bool = False
    """Only preview the changes."""


class MovedOffset(Struct, frozen=True, kw_only=True):
    topic: str
    partition: int
    before: int | None
    """Null without a committed offset."""
    after: int


class ResetDone(Struct, frozen=True, kw_only=True):
    group: str
    dry_run: bool
    offsets: list[MovedOffset]


async def reset(call: Call) -> ResetDone:
    group_id = call.path("id")
    wanted = await call.body(Reset)
    is_share = await is_share_group(call, group_id)
    if is_share:
        before = {place: each.start for place, each in (await share_offsets(call, group_id)).items()}
    else:
        before = await committed_offsets(call, group_id)
    after = await _after(call, wanted, before)
    if not after:
        raise BadRequest("no offsets to reset", hint="Name the topics: the group has no offsets yet.")
    if not wanted.dry_run:
        await (move_share_group if is_share else commit)(call, group_id, after)
        call.note("ResetGroup", group_id)
    moved = [
        MovedOffset(topic=topic, partition=partition, before=before.get((topic, partition)), after=offset)
        for (topic, partition), offset in sorted(after.items())
    ]
    return ResetDone(group=group_id, dry_run=wanted.dry_run, offsets=moved)


async def _after(call: Call, wanted: Reset, before: Mapping[Place, int]) -> dict[Place, int]:
    if wanted.to == "offsets":
        if wanted.offsets is None:
            raise BadRequest("`to: offsets` needs `offsets`")
        return await checked(call.broker, wanted.offsets)
    if wanted.to in ("timestamp", "by") and getattr(wanted, wanted.to) is None:
        raise BadRequest(f"`to: {wanted.to}` needs `{wanted.to}`")
    return {place: await _moved(call, place, wanted, before) for place in _places(call, wanted, before)}


def _places(call: Call, wanted: Reset, before: Mapping[Place, int]) -> list[Place]:
    if wanted.topics is None:
        return list(before)
    places = []
    for name in wanted.topics:
        call.check(AclOperation.READ, ResourceType.TOPIC, name)
        state = call.broker.topics.by_name.get(name)
        if state is None:
            raise UnknownTopicOrPartition(f"no topic {name!r}")
        places += [(name, index) for index in range(len(state.partitions))]
    return places


async def _moved(call: Call, place: Place, wanted: Reset, before: Mapping[Place, int]) -> int:
    partition = call.broker.topics.partition(*place)
    start, end = (await bounds(call.broker, [partition]))[partition.at]
    match wanted.to:
        case "earliest":
            return start
        case "latest":
            return end
        case "timestamp":
            return await offset_at(call, partition.at, wanted.timestamp or 0, end)
        case _:
            # Limited to the range of existing messages.
            return max(start, min(end, before.get(place, start) + (wanted.by or 0)))


ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/v1/groups/{id}/reset",
        reset,
        "Reset the offsets of an empty group",
        body=Reset,
        answer=ResetDone,
    ),
)
