"""FindCoordinator (10), JoinGroup (11), Heartbeat (12), LeaveGroup (13), SyncGroup (14), DescribeGroups (15),
ListGroups (16), DeleteGroups (42).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ottla.broker.requests.turns import Turns
from ottla.broker.topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ottla.core.errors import ErrorCode
from ottla.groups.actions import Caller, refuse_join, refuse_sync
from ottla.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ottla.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.leave_group import LeaveGroupResponse
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context
    from ottla.broker.requests.turns import InTurns
    from ottla.wire.declare import Response
    from ottla.wire.messages.join_group import JoinGroupRequest
    from ottla.wire.messages.leave_group import LeaveGroupRequest
    from ottla.wire.messages.sync_group import SyncGroupRequest

_GROUP: Final = 0
_TRANSACTION: Final = 1
_MANY_SINCE: Final = 4


def find_coordinator(
    broker: Broker, request: FindCoordinatorRequest, context: Context
) -> InTurns[FindCoordinatorResponse]:
    if context.version >= _MANY_SINCE:
        turns = Turns()
        found = []
        for key in request.coordinator_keys:
            found.append(_coordinator(broker, key, request.key_type, context))
            if turns.are_over():
                yield
        return FindCoordinatorResponse(coordinators=tuple(found))
    one = _coordinator(broker, request.key, request.key_type, context)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


def _coordinator(broker: Broker, key: str, key_type: int, context: Context) -> Coordinator:
    error, message = ErrorCode.NONE, None
    if key_type not in (_GROUP, _TRANSACTION):
        error, message = ErrorCode.INVALID_REQUEST, "only groups and transactional ids have a coordinator"
    elif not key and key_type == _GROUP:
        error, message = ErrorCode.INVALID_GROUP_ID, "the group id is empty"
    elif not key:
        error, message = ErrorCode.INVALID_REQUEST, "the transactional id is empty"
    if error is not ErrorCode.NONE:
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=message)
    topic = CONSUMER_OFFSETS if key_type == _GROUP else TRANSACTION_STATE
    if broker.cluster is None and _is_damaged(broker, key, key_type):
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        message = f"the partition of {topic} with {key} is damaged; see the broker's log"
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=message)
    found = broker.topology.coordinator_of(topic, key, context.connection)
    if found is None:
        error, message = ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{key} currently has no coordinator"
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=message)
    return Coordinator(
        key=key, node_id=found.id, host=found.host, port=found.port, error_code=error, error_message=message
    )


def _is_damaged(broker: Broker, key: str, key_type: int) -> bool:
    if key_type == _GROUP:
        return bool(broker.groups.error_for(key))
    return broker.has_had_transactions and bool(broker.transactions.error_for(key))


def _caller(context: Context) -> Caller:
    token = asyncio.get_running_loop().create_future()
    return Caller(token, context.version, context.client_id, context.client_host)


async def join_group(broker: Broker, request: JoinGroupRequest, context: Context) -> Response:
    groups, caller = broker.groups, _caller(context)
    if error := groups.error_for(request.group_id):
        return refuse_join(caller.token, error).response
    if broker.is_share_group(request.group_id):
        return refuse_join(caller.token, ErrorCode.INCONSISTENT_GROUP_PROTOCOL).response
    actions = groups.rules.join(request, caller, groups.now_ms())
    return await groups.answered(request.group_id, caller.token, actions)  # type: ignore[arg-type]  # its future


async def sync_group(broker: Broker, request: SyncGroupRequest, context: Context) -> Response:
    groups, caller = broker.groups, _caller(context)
    if error := groups.error_for(request.group_id):
        return refuse_sync(caller.token, error).response
    actions = groups.rules.sync(request, caller.token, groups.now_ms())
    return await groups.answered(request.group_id, caller.token, actions)  # type: ignore[arg-type]


async def leave_group(broker: Broker, request: LeaveGroupRequest, context: Context) -> Response:
    groups, caller = broker.groups, _caller(context)
    if error := groups.error_for(request.group_id):
        return LeaveGroupResponse(error_code=error)
    actions = groups.rules.leave(request, caller, groups.now_ms())
    return await groups.answered(request.group_id, caller.token, actions)  # type: ignore[arg-type]


def heartbeat(broker: Broker, request: HeartbeatRequest, _context: Context) -> HeartbeatResponse:
    groups = broker.groups
    error = groups.error_for(request.group_id) or groups.rules.heartbeat(request, groups.now_ms())
    return HeartbeatResponse(error_code=error)


def describe_groups(
    broker: Broker, request: DescribeGroupsRequest, context: Context
) -> InTurns[DescribeGroupsResponse]:
    turns = Turns()
    described = []
    for group_id in request.groups:
        if error := broker.groups.error_for(group_id):
            described.append(_not_described(group_id, error))
        else:
            described.append(broker.groups.rules.describe(group_id, context.version))
        if turns.are_over():
            yield
    return DescribeGroupsResponse(groups=tuple(described))


def _not_described(group_id: str, error: ErrorCode) -> DescribedGroup:
    return DescribedGroup(
        error_code=error, group_id=group_id, group_state="", protocol_type="", protocol_data="", members=()
    )


def list_groups(broker: Broker, request: ListGroupsRequest, _context: Context) -> ListGroupsResponse:
    groups = broker.groups.rules.listed(request)
    if broker.has_shared:
        groups += broker.share.groups.listed(request)
    error = ErrorCode.COORDINATOR_NOT_AVAILABLE if broker.groups.are_some_unknown else ErrorCode.NONE
    return ListGroupsResponse(error_code=error, groups=groups)


async def delete_groups(broker: Broker, request: DeleteGroupsRequest, _context: Context) -> DeleteGroupsResponse:
    turns = Turns()
    results = []
    for group_id in request.groups_names:
        error = broker.groups.error_for(group_id)
        if not error and broker.is_share_group(group_id):
            error = await broker.share.delete(group_id)
        elif not error:
            error, actions = broker.groups.rules.delete(group_id)
            error = error or await broker.groups.persist(actions)
        results.append(DeletableGroupResult(group_id=group_id, error_code=error))
        if turns.are_over():
            await asyncio.sleep(0)
    return DeleteGroupsResponse(results=tuple(results))
