"""Share groups: who may describe a group does not learn of topics in it that they may not describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from ottla.broker.authorization.refusals import refusal
from ottla.broker.authorization.rules import Each, filtered, then
from ottla.broker.authorized_operations import GROUP_OPERATIONS
from ottla.core.errors import ErrorCode
from ottla.core.security import AclOperation, ResourceType
from ottla.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsResponseTopic

if TYPE_CHECKING:
    from ottla.broker.authorization.authorizer import Authorizer
    from ottla.broker.authorization.rules import Answer
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.broker.dispatch import Handler
    from ottla.wire.messages.describe_share_group_offsets import (
        DescribeShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsRequestGroup,
        DescribeShareGroupOffsetsResponse,
        DescribeShareGroupOffsetsResponseGroup,
    )
    from ottla.wire.messages.share_group_describe import (
        DescribedGroup,
        ShareGroupDescribeRequest,
        ShareGroupDescribeResponse,
    )

_GROUP: Final = ResourceType.GROUP
_DESCRIBED: Final = Each(AclOperation.DESCRIBE, _GROUP, "group_ids", "groups", name=lambda _, group: str(group))
_OFFSETS: Final = Each(AclOperation.DESCRIBE, _GROUP, "groups", "groups", name=lambda _, one: str(one.group_id))


def describe_share_groups(
    authorizer: Authorizer, handler: Handler, broker: Broker, request: ShareGroupDescribeRequest, context: Context
) -> Answer:
    """As Kafka does it: nothing of a group whose members have topics that the client may not describe."""
    answer = filtered(_DESCRIBED, authorizer, handler, broker, request, context)

    def visible(group: DescribedGroup) -> DescribedGroup:
        assigned = {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}
        names = assigned.union(*(member.subscribed_topic_names for member in group.members))
        if not all(_may_see(authorizer, name, context) for name in names):
            return structs.replace(
                group,
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                error_message="The group has described topic(s) that the client is not authorized to describe.",
                members=(),
            )
        if group.error_code or not request.include_authorized_operations:
            return group
        bits = authorizer.bits(context, _GROUP, group.group_id, GROUP_OPERATIONS)
        return structs.replace(group, authorized_operations=bits)

    def all_visible(response: ShareGroupDescribeResponse) -> ShareGroupDescribeResponse:
        return structs.replace(response, groups=tuple(visible(one) for one in response.groups))

    return then(answer, all_visible)


def describe_share_group_offsets(
    authorizer: Authorizer,
    handler: Handler,
    broker: Broker,
    request: DescribeShareGroupOffsetsRequest,
    context: Context,
) -> Answer:
    """Topics that may not be described are refused where they were named, and left out where all were asked for."""
    refused: dict[str, tuple[DescribeShareGroupOffsetsResponseTopic, ...]] = {}

    def without_hidden(group: DescribeShareGroupOffsetsRequestGroup) -> DescribeShareGroupOffsetsRequestGroup:
        if group.topics is None:
            return group
        hidden = [one for one in group.topics if not _check(authorizer, one.topic_name, context)]
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        refused[group.group_id] = tuple(
            refusal(DescribeShareGroupOffsetsResponseTopic, one, code, context.version) for one in hidden
        )
        return structs.replace(group, topics=tuple(one for one in group.topics if one not in hidden))

    def visible(group: DescribeShareGroupOffsetsResponseGroup) -> DescribeShareGroupOffsetsResponseGroup:
        if group.error_code:
            return group
        topics = (one for one in group.topics if _may_see(authorizer, one.topic_name, context))
        return structs.replace(group, topics=(*topics, *refused.get(group.group_id, ())))

    def all_visible(response: DescribeShareGroupOffsetsResponse) -> DescribeShareGroupOffsetsResponse:
        return structs.replace(response, groups=tuple(visible(one) for one in response.groups))

    asked = structs.replace(request, groups=tuple(without_hidden(one) for one in request.groups))
    return then(filtered(_OFFSETS, authorizer, handler, broker, asked, context), all_visible)


def _check(authorizer: Authorizer, name: str, context: Context) -> bool:
    return authorizer.check(context, AclOperation.DESCRIBE, ResourceType.TOPIC, name)


def _may_see(authorizer: Authorizer, name: str, context: Context) -> bool:
    return authorizer.is_allowed(context, AclOperation.DESCRIBE, ResourceType.TOPIC, name)
