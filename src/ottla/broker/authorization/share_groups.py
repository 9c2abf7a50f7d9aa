"""Authorization of share groups: a description does not reveal topics that the client may not describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from ottla.broker.authorization.groups import shown_group
from ottla.broker.authorization.guarding import Denials, filtered
from ottla.broker.authorization.refusals import refusal
from ottla.broker.authorization.rules import Each, Resource
from ottla.broker.requests.answers import after, then
from ottla.broker.requests.turns import Turns
from ottla.core.errors import ErrorCode
from ottla.core.security import AclOperation, ResourceType
from ottla.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsResponseTopic

if TYPE_CHECKING:
    from ottla.broker.authorization.authorizer import Authorizer
    from ottla.broker.broker import Broker
    from ottla.broker.requests.answers import Handler, NowOrLater
    from ottla.broker.requests.context import Context
    from ottla.broker.requests.turns import InTurns
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
) -> NowOrLater:
    """As in Kafka: hides a group whose members have topics that the client may not describe."""
    answer = filtered(_DESCRIBED, authorizer, handler, broker, request, context)

    def visible(group: DescribedGroup) -> DescribedGroup:
        assigned = {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}
        names = assigned.union(*(member.subscribed_topic_names for member in group.members))
        return shown_group(authorizer, group, names, context, with_operations=request.include_authorized_operations)

    def all_visible(response: ShareGroupDescribeResponse) -> ShareGroupDescribeResponse:
        return structs.replace(response, groups=tuple(visible(one) for one in response.groups))

    return then(answer, all_visible)


def describe_share_group_offsets(
    authorizer: Authorizer,
    handler: Handler,
    broker: Broker,
    request: DescribeShareGroupOffsetsRequest,
    context: Context,
) -> NowOrLater:
    """Hidden topics get an error if they were named, and are omitted if all were requested."""
    refused: dict[str, list[DescribeShareGroupOffsetsResponseTopic]] = {}

    def visible(group: DescribeShareGroupOffsetsResponseGroup) -> DescribeShareGroupOffsetsResponseGroup:
        if group.error_code:
            return group
        topics = (one for one in group.topics if authorizer.may_see(context, one.topic_name))
        return structs.replace(group, topics=(*topics, *refused.get(group.group_id, ())))

    def all_visible(response: DescribeShareGroupOffsetsResponse) -> DescribeShareGroupOffsetsResponse:
        return structs.replace(response, groups=tuple(visible(one) for one in response.groups))

    def go_on(groups: list[DescribeShareGroupOffsetsRequestGroup]) -> NowOrLater:
        asked = structs.replace(request, groups=tuple(groups))
        return then(filtered(_OFFSETS, authorizer, handler, broker, asked, context), all_visible)

    return after(_without_hidden(Denials(authorizer, context), request, context.version, refused), go_on)


def _without_hidden(
    denials: Denials,
    request: DescribeShareGroupOffsetsRequest,
    version: int,
    refused: dict[str, list[DescribeShareGroupOffsetsResponseTopic]],
) -> InTurns[list[DescribeShareGroupOffsetsRequestGroup]]:
    turns = Turns()
    groups = []
    for group in request.groups:
        shown = []
        for one in group.topics or ():
            if denials.check(AclOperation.DESCRIBE, Resource(ResourceType.TOPIC, one.topic_name)):
                shown.append(one)
            else:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                refused.setdefault(group.group_id, []).append(
                    refusal(DescribeShareGroupOffsetsResponseTopic, one, code, version)
                )
            if turns.are_over():
                yield
        groups.append(group if group.topics is None else structs.replace(group, topics=tuple(shown)))
    denials.note()
    return groups
