"""Authorization of group APIs: what is visible depends on the group and on its topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import structs

from ottla.broker.authorization.guarding import filtered
from ottla.broker.authorization.refusals import refusal
from ottla.broker.authorization.rules import CLUSTER, Each, Resource
from ottla.broker.requests.answers import then
from ottla.broker.requests.authorized_operations import GROUP_OPERATIONS
from ottla.broker.topic_names import topic_name
from ottla.core.errors import ErrorCode
from ottla.storage.catalog.entries import AclOperation, ResourceType
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.broker.authorization.authorizer import Authorizer
    from ottla.broker.broker import Broker
    from ottla.broker.requests.answers import Handler, NowOrLater
    from ottla.broker.requests.context import Context
    from ottla.wire.messages.consumer_group_describe import (
        ConsumerGroupDescribeRequest,
        ConsumerGroupDescribeResponse,
    )
    from ottla.wire.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
    from ottla.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
    from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
    from ottla.wire.messages.share_group_describe import DescribedGroup as DescribedShareGroup

Described = TypeVar("Described", "DescribedConsumerGroup", "DescribedShareGroup")

_GROUP: Final = ResourceType.GROUP
_TOPIC: Final = ResourceType.TOPIC
_MANY_SINCE: Final = 4
_SHARE_STATE_SINCE: Final = 6
_GROUPS_SINCE: Final = 8
_COORDINATED: Final = {0: _GROUP, 1: ResourceType.TRANSACTIONAL_ID}


def find_coordinator(
    authorizer: Authorizer, handler: Handler, broker: Broker, request: FindCoordinatorRequest, context: Context
) -> NowOrLater:
    kind = _COORDINATED.get(request.key_type)
    if kind is None and context.version < _SHARE_STATE_SINCE:
        return handler(broker, request, context)  # the handler rejects it
    if kind is None:
        # The state of share groups is for brokers only.
        each = Each(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, _KEYS, _FOUND, resource=lambda _, __: CLUSTER)
    else:
        each = Each(AclOperation.DESCRIBE, kind, _KEYS, _FOUND, name=lambda _, key: str(key))
    if context.version >= _MANY_SINCE:
        return filtered(each, authorizer, handler, broker, request, context)
    resource = each.of(broker, request.key) or CLUSTER
    if authorizer.check(context, each.operation, *resource):
        return handler(broker, request, context)
    return refusal(FindCoordinatorResponse, None, _code_of(resource), context.version)


_KEYS: Final = "coordinator_keys"
_FOUND: Final = "coordinators"


def _code_of(resource: Resource) -> ErrorCode:
    from ottla.broker.authorization.refusals import CODES

    return CODES[resource.kind]


def list_groups(
    authorizer: Authorizer, handler: Handler, broker: Broker, request: ListGroupsRequest, context: Context
) -> NowOrLater:
    """List all groups with DESCRIBE on the cluster; otherwise only the groups that the client may describe."""
    answer = handler(broker, request, context)
    if authorizer.is_allowed(context, AclOperation.DESCRIBE, *CLUSTER):
        return answer

    def visible(response: ListGroupsResponse) -> ListGroupsResponse:
        groups = (
            one
            for one in response.groups
            if authorizer.is_allowed(context, AclOperation.DESCRIBE, _GROUP, one.group_id)
        )
        return structs.replace(response, groups=tuple(groups))

    return then(answer, visible)


DESCRIBE_GROUPS: Final = Each(AclOperation.DESCRIBE, _GROUP, "groups", "groups", name=lambda _, group: str(group))


def describe_groups(
    authorizer: Authorizer, handler: Handler, broker: Broker, request: DescribeGroupsRequest, context: Context
) -> NowOrLater:
    answer = filtered(DESCRIBE_GROUPS, authorizer, handler, broker, request, context)
    if not request.include_authorized_operations:
        return answer

    def with_operations(response: DescribeGroupsResponse) -> DescribeGroupsResponse:
        groups = (
            one
            if one.error_code
            else structs.replace(
                one, authorized_operations=authorizer.bits(context, _GROUP, one.group_id, GROUP_OPERATIONS)
            )
            for one in response.groups
        )
        return structs.replace(response, groups=tuple(groups))

    return then(answer, with_operations)


DESCRIBE_CONSUMER_GROUPS: Final = Each(
    AclOperation.DESCRIBE, _GROUP, "group_ids", "groups", name=lambda _, group: str(group)
)


def describe_consumer_groups(
    authorizer: Authorizer, handler: Handler, broker: Broker, request: ConsumerGroupDescribeRequest, context: Context
) -> NowOrLater:
    """Hides a group whose members have topics that the client may not describe."""
    answer = filtered(DESCRIBE_CONSUMER_GROUPS, authorizer, handler, broker, request, context)

    def visible(group: DescribedConsumerGroup) -> DescribedConsumerGroup:
        names = {
            topic.topic_name
            for member in group.members
            for assignment in (member.assignment, member.target_assignment)
            for topic in assignment.topic_partitions
        } | {name for member in group.members for name in member.subscribed_topic_names}
        return shown_group(authorizer, group, names, context, with_operations=request.include_authorized_operations)

    def all_visible(response: ConsumerGroupDescribeResponse) -> ConsumerGroupDescribeResponse:
        return structs.replace(response, groups=tuple(visible(one) for one in response.groups))

    return then(answer, all_visible)


def subscribe(
    authorizer: Authorizer,
    handler: Handler,
    broker: Broker,
    request: ConsumerGroupHeartbeatRequest | ShareGroupHeartbeatRequest,
    context: Context,
) -> NowOrLater:
    """A member may subscribe only to topics that it may describe."""
    names = request.subscribed_topic_names or ()
    if all(authorizer.check(context, AclOperation.DESCRIBE, _TOPIC, name) for name in names):
        return handler(broker, request, context)
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if isinstance(request, ConsumerGroupHeartbeatRequest):
        return refusal(ConsumerGroupHeartbeatResponse, request, code, context.version)
    return refusal(ShareGroupHeartbeatResponse, request, code, context.version)


# OffsetFetch


def offset_fetch(
    authorizer: Authorizer, handler: Handler, broker: Broker, request: OffsetFetchRequest, context: Context
) -> NowOrLater:
    if context.version >= _GROUPS_SINCE:
        each = Each(AclOperation.DESCRIBE, _GROUP, "groups", "groups", name=lambda _, group: str(group.group_id))
        asked = {one.group_id for one in request.groups if one.topics is not None}
        answer = filtered(each, authorizer, handler, broker, request, context)
        return then(answer, lambda response: _hiding_in_groups(authorizer, broker, response, asked, context))
    if not authorizer.check(context, AclOperation.DESCRIBE, _GROUP, request.group_id):
        return refusal(OffsetFetchResponse, request, ErrorCode.GROUP_AUTHORIZATION_FAILED, context.version)

    def hiding(response: OffsetFetchResponse) -> OffsetFetchResponse:
        topics = [
            one if authorizer.may_see(context, one.name) else _hidden(one, context)
            for one in response.topics
            if request.topics is not None or authorizer.may_see(context, one.name)
        ]
        return structs.replace(response, topics=tuple(topics))

    return then(handler(broker, request, context), hiding)


def _hiding_in_groups(
    authorizer: Authorizer, broker: Broker, response: OffsetFetchResponse, asked: Iterable[str], context: Context
) -> OffsetFetchResponse:
    def visible(group: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup:
        topics = []
        for one in group.topics:
            name = topic_name(broker, one)
            if name is None or authorizer.may_see(context, name):
                topics.append(one)
            elif group.group_id in asked:
                # In a request for all topics, hidden ones are omitted; a request for a hidden one gets an error.
                topics.append(_hidden_in_group(one, context))
        return structs.replace(group, topics=tuple(topics))

    return structs.replace(response, groups=tuple(visible(one) for one in response.groups))


def shown_group(
    authorizer: Authorizer, group: Described, topics: Iterable[str], context: Context, *, with_operations: bool
) -> Described:
    """A group as the client may see it: without its members if the client may not describe one of these topics."""
    if not all(authorizer.may_see(context, name) for name in topics):
        return structs.replace(
            group,
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message="The group has described topic(s) that the client is not authorized to describe.",
            members=(),
        )
    if group.error_code or not with_operations:
        return group
    bits = authorizer.bits(context, _GROUP, group.group_id, GROUP_OPERATIONS)
    return structs.replace(group, authorized_operations=bits)


def _hidden(topic: OffsetFetchResponseTopic, context: Context) -> OffsetFetchResponseTopic:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    partitions = tuple(
        refusal(OffsetFetchResponsePartition, one.partition_index, code, context.version) for one in topic.partitions
    )
    return structs.replace(topic, partitions=partitions)


def _hidden_in_group(topic: OffsetFetchResponseTopics, context: Context) -> OffsetFetchResponseTopics:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    partitions = tuple(
        refusal(OffsetFetchResponsePartitions, one.partition_index, code, context.version) for one in topic.partitions
    )
    return structs.replace(topic, partitions=partitions)
