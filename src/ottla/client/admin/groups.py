"""Groups: list, describe and delete."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.client.admin.share_groups import ShareGroupAdmin
from ottla.client.errors import BrokerError, broker_error, raise_for
from ottla.core.errors import ErrorCode
from ottla.core.ids import TopicPartition
from ottla.wire.consumer_protocol import CONSUMER_PROTOCOL, decode_assignment, each_partition
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember, DescribeGroupsRequest
from ottla.wire.messages.list_groups import ListGroupsRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.wire.messages.consumer_group_describe import Assignment as ConsumerAssignment
    from ottla.wire.messages.share_group_describe import Assignment as ShareAssignment
    from ottla.wire.messages.share_group_describe import DescribedGroup as DescribedShareGroup

_DEAD: Final = "Dead"


@dataclass(frozen=True, slots=True)
class GroupListing:
    group: str
    protocol_type: str
    state: str
    """Empty if the broker is too old to report it."""
    type: str
    """classic, consumer or share; empty if the broker is too old to report it."""


@dataclass(frozen=True, slots=True)
class GroupMemberDescription:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    partitions: frozenset[TopicPartition]
    epoch: int | None = None
    """The member epoch; None in a classic group."""


@dataclass(frozen=True, slots=True)
class GroupDescription:
    group: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: int
    members: tuple[GroupMemberDescription, ...]
    type: str = "classic"
    """classic, consumer or share."""
    epoch: int | None = None
    """The assignment epoch; None for a classic group."""


class GroupAdmin(ShareGroupAdmin):
    async def list_groups(self, *, states: Iterable[str] = ()) -> list[GroupListing]:
        """All groups, or those in these states. Each broker lists its own, so all of them are queried."""
        request = ListGroupsRequest(states_filter=tuple(states))
        await self._router.refresh(())
        answers = await asyncio.gather(
            *(self._router.ask(request, node_id=node_id) for node_id in self._router.view.brokers)
        )
        listed = {}
        for answer in answers:
            raise_for(answer.error_code, "cannot list groups")
            for each in answer.groups:
                listed[each.group_id] = GroupListing(
                    each.group_id, each.protocol_type, each.group_state, each.group_type
                )
        return [listed[name] for name in sorted(listed)]

    async def describe_group(self, group: str) -> GroupDescription:
        """A group's state and members: a classic, consumer (KIP-848) or share group (KIP-932)."""
        described = await self._describe_consumer_group(group)
        if described is not None:
            return described
        try:
            return await self._describe_classic_group(group)
        except BrokerError as refused:
            shared = await self._find_share_group(group) if refused.code == ErrorCode.GROUP_ID_NOT_FOUND else None
            if shared is None:
                raise
            return _described_share_group(shared, await self._router.coordinator(group))

    async def delete_group(self, group: str) -> None:
        """Delete an empty group and its offsets."""
        request = DeleteGroupsRequest(groups_names=(group,))
        response = await self._ask_coordinator(
            group, request, lambda answer: (each.error_code for each in answer.results)
        )
        [result] = response.results
        raise_for(result.error_code, f"cannot delete group {group!r}")

    async def delete_groups(self, groups: Iterable[str]) -> dict[str, BrokerError | None]:
        """Delete groups; returns for each an error, or None."""

        async def delete(group: str) -> tuple[str, BrokerError | None]:
            try:
                await self.delete_group(group)
            except BrokerError as refused:
                return group, refused
            return group, None

        return dict(await asyncio.gather(*map(delete, groups)))

    async def _describe_consumer_group(self, group: str) -> GroupDescription | None:
        request = ConsumerGroupDescribeRequest(group_ids=(group,), include_authorized_operations=False)
        # This request finds neither classic groups nor groups that do not exist.
        found = await self._find_group(group, request, lambda answer: answer.groups)
        return None if found is None else _described_consumer_group(found, await self._router.coordinator(group))

    async def _describe_classic_group(self, group: str) -> GroupDescription:
        response = await self._ask_coordinator(
            group,
            DescribeGroupsRequest(groups=(group,)),
            lambda answer: (each.error_code for each in answer.groups),
        )
        [result] = response.groups
        raise_for(result.error_code, f"cannot describe group {group!r}", result.error_message)
        if result.group_state == _DEAD:  # brokers before Kafka 4: no such group
            raise broker_error(ErrorCode.GROUP_ID_NOT_FOUND, f"cannot describe group {group!r}")
        return _described_classic_group(result, await self._router.coordinator(group))


def _described_consumer_group(result: DescribedConsumerGroup, coordinator: int) -> GroupDescription:
    members = tuple(
        GroupMemberDescription(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            _partitions(each.assignment),
            each.member_epoch,
        )
        for each in result.members
    )
    return GroupDescription(
        result.group_id,
        result.group_state,
        CONSUMER_PROTOCOL,
        result.assignor_name,
        coordinator,
        members,
        "consumer",
        result.group_epoch,
    )


def _described_share_group(result: DescribedShareGroup, coordinator: int) -> GroupDescription:
    members = tuple(
        GroupMemberDescription(
            each.member_id,
            None,
            each.client_id,
            each.client_host,
            _partitions(each.assignment),
            each.member_epoch,
        )
        for each in result.members
    )
    return GroupDescription(
        result.group_id,
        result.group_state,
        "share",
        result.assignor_name,
        coordinator,
        members,
        "share",
        result.group_epoch,
    )


def _partitions(assignment: ConsumerAssignment | ShareAssignment) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def _described_classic_group(result: DescribedGroup, coordinator: int) -> GroupDescription:
    members = tuple(
        GroupMemberDescription(
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host,
            _assigned(result.protocol_type, each),
        )
        for each in result.members
    )
    return GroupDescription(
        result.group_id, result.group_state, result.protocol_type, result.protocol_data, coordinator, members
    )


def _assigned(protocol_type: str, member: DescribedGroupMember) -> frozenset[TopicPartition]:
    """A consumer's assignment; other member types have their own formats."""
    if protocol_type != CONSUMER_PROTOCOL or not member.member_assignment:
        return frozenset()
    return frozenset(each_partition(decode_assignment(member.member_assignment).assigned_partitions))
