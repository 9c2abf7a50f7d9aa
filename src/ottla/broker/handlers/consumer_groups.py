"""ConsumerGroupHeartbeat (68), ConsumerGroupDescribe (69): groups of the consumer protocol (KIP-848)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ottla.broker.requests.answers import settled
from ottla.broker.requests.turns import Turns
from ottla.core.errors import ErrorCode
from ottla.groups.actions import AnswerHeartbeat, Caller
from ottla.groups.consumer.describing import not_described
from ottla.groups.consumer.refusing import refuse_heartbeat
from ottla.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context
    from ottla.broker.requests.turns import InTurns
    from ottla.wire.declare import Response
    from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def consumer_group_heartbeat(
    broker: Broker, request: ConsumerGroupHeartbeatRequest, context: Context
) -> Response | Coroutine[object, object, Response]:
    unresolved = broker.groups.rules.consumers.unresolved(request)
    return _resolved_first(broker, request, context, unresolved) if unresolved else _heartbeat(broker, request, context)


async def _resolved_first(
    broker: Broker, request: ConsumerGroupHeartbeatRequest, context: Context, unresolved: list[str]
) -> Response:
    """Match patterns against all topics, in slices."""
    matching = broker.groups.rules.table.environment.matching
    turns = Turns()
    for pattern in unresolved:
        for _ in matching.steps(pattern):
            if turns.are_over():
                await asyncio.sleep(0)
        await asyncio.sleep(0)
    response: Response = await settled(_heartbeat(broker, request, context))
    return response


def _heartbeat(
    broker: Broker, request: ConsumerGroupHeartbeatRequest, context: Context
) -> Response | Coroutine[object, object, Response]:
    groups = broker.groups
    token: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    if error := groups.error_for(request.group_id):
        return refuse_heartbeat(token, error).response
    if broker.is_share_group(request.group_id):
        return refuse_heartbeat(token, ErrorCode.INCONSISTENT_GROUP_PROTOCOL).response
    caller = Caller(token, context.version, context.client_id, context.client_host)
    actions = groups.rules.consumers.heartbeat(request, caller, groups.now_ms(), _may_see(broker, context))
    first = actions[0]
    if isinstance(first, AnswerHeartbeat):
        return first.response
    return groups.answered(request.group_id, token, actions)


def _may_see(broker: Broker, context: Context) -> Callable[[str], bool]:
    """The topics that a pattern may match: those that the member may describe."""
    authorizer = broker.security.authorizer
    if authorizer is None:
        return lambda _: True
    return lambda name: authorizer.may_see(context, name)


def consumer_group_describe(
    broker: Broker, request: ConsumerGroupDescribeRequest, _context: Context
) -> InTurns[ConsumerGroupDescribeResponse]:
    turns = Turns()
    described = []
    for group_id in request.group_ids:
        if error := broker.groups.error_for(group_id):
            described.append(not_described(group_id, error))
        else:
            described.append(broker.groups.rules.consumers.describe(group_id))
        if turns.are_over():
            yield
    return ConsumerGroupDescribeResponse(groups=tuple(described))
