"""DescribeConfigs (32), AlterConfigs (33), IncrementalAlterConfigs (44) and ListConfigResources (74), of topics, groups
and brokers.

Loggers and client metrics have no configs here: requests for them get INVALID_REQUEST, and none are listed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from ottla.broker.configs.alter import (
    broker_resource,
    cluster_default_resource,
    group_resource,
    incremental_edit,
    replacing_edit,
    topic_resource,
)
from ottla.broker.configs.describe import describe_broker, describe_cluster_default, describe_group, describe_topic
from ottla.broker.configs.replies import for_describe
from ottla.broker.requests.turns import Turns
from ottla.core.errors import ApiError, ErrorCode, InvalidRequest, UnknownTopicOrPartition
from ottla.storage.catalog.entries import ConfigResource, ConfigScope
from ottla.wire.messages import alter_configs as replacing
from ottla.wire.messages import incremental_alter_configs as incremental
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from ottla.wire.messages.list_config_resources import ConfigResource as ListedResource
from ottla.wire.messages.list_config_resources import ListConfigResourcesResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ottla.broker.broker import Broker
    from ottla.broker.configs.alter import Resource
    from ottla.broker.configs.describe import ConfigEntry
    from ottla.broker.requests.context import Context
    from ottla.broker.requests.turns import InTurns
    from ottla.storage.catalog.catalog import Edit
    from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest

    AlterRequest: TypeAlias = replacing.AlterConfigsRequest | incremental.IncrementalAlterConfigsRequest
    Altered: TypeAlias = replacing.AlterConfigsResource | incremental.AlterConfigsResource
    MakeEdit: TypeAlias = Callable[[Resource, Any], Edit[str]]

AnswerT = TypeVar("AnswerT")

_logger: Final = logging.getLogger(__name__)

_TOPIC: Final = 2
_BROKER: Final = 4
_GROUP: Final = 32
_LOGGER: Final = 8
_CLIENT_METRICS: Final = 16
_LISTED: Final = frozenset({_TOPIC, _BROKER, _LOGGER, _CLIENT_METRICS, _GROUP})
_FIRST_LIST_OF_ALL_TYPES: Final = 1
_ALL_BROKERS: Final = ""


# Describing


def describe_configs(
    broker: Broker, request: DescribeConfigsRequest, _context: Context
) -> InTurns[DescribeConfigsResponse]:
    # Without duplicates: a request may contain the same resource, with a response of ten kilobytes, a million times.
    resources = {(one.resource_type, one.resource_name): one for one in request.resources}
    turns = Turns()
    results = []
    for one in resources.values():
        results.append(_result(broker, one, request))
        if turns.are_over():
            yield
    return DescribeConfigsResponse(results=tuple(results))


def _result(broker: Broker, wanted: DescribeConfigsResource, request: DescribeConfigsRequest) -> DescribeConfigsResult:
    code, message = ErrorCode.NONE, None
    entries: list[ConfigEntry] = []
    try:
        entries = _described(broker, wanted)
    except ApiError as refused:
        code, message = refused.code, str(refused)
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=wanted.resource_type,
        resource_name=wanted.resource_name,
        configs=for_describe(entries, synonyms=request.include_synonyms, documentation=request.include_documentation),
    )


def _described(broker: Broker, wanted: DescribeConfigsResource) -> list[ConfigEntry]:
    name, keys = wanted.resource_name, wanted.configuration_keys
    if wanted.resource_type == _TOPIC:
        broker.check_topic_name(name)
        state = broker.topics.by_name.get(name)
        if state is None:
            raise _no_topic(name)
        return describe_topic(state.entry.configs, broker.configs, keys)
    if wanted.resource_type == _GROUP:
        return describe_group(_configs_of_group(broker, name), broker.configs, keys)
    _check_is_broker(broker, wanted.resource_type, name)
    if name == _ALL_BROKERS:
        return describe_cluster_default(broker.configs, keys)
    return describe_broker(broker.configs, keys)


# Listing


def list_config_resources(
    broker: Broker, request: ListConfigResourcesRequest, context: Context
) -> ListConfigResourcesResponse:
    """All topics and brokers, and groups with configs, which need not exist. Version 0 lists client metrics."""
    types = frozenset(request.resource_types or _LISTED)
    if context.version < _FIRST_LIST_OF_ALL_TYPES:
        types = frozenset({_CLIENT_METRICS})
    if not types <= _LISTED:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=())
    names: dict[int, Iterable[str]] = {
        _GROUP: (one.name for one in broker.catalog.view.configs if one.scope is ConfigScope.GROUP),
        _BROKER: (str(one.id) for one in broker.topology.brokers(context.connection)),
        _TOPIC: broker.topics.by_name,
    }
    found = tuple(
        ListedResource(resource_name=name, resource_type=kind)
        for kind in names
        if kind in types
        for name in names[kind]
    )
    return ListConfigResourcesResponse(error_code=ErrorCode.NONE, config_resources=found)


# Altering


async def alter_configs(
    broker: Broker, request: replacing.AlterConfigsRequest, context: Context
) -> replacing.AlterConfigsResponse:
    """Configs that are not in the request are reset to their defaults."""
    answer = replacing.AlterConfigsResourceResponse
    return replacing.AlterConfigsResponse(responses=await _answers(broker, request, replacing_edit, context, answer))


async def incremental_alter_configs(
    broker: Broker, request: incremental.IncrementalAlterConfigsRequest, context: Context
) -> incremental.IncrementalAlterConfigsResponse:
    answer = incremental.AlterConfigsResourceResponse
    return incremental.IncrementalAlterConfigsResponse(
        responses=await _answers(broker, request, incremental_edit, context, answer)
    )


async def _answers(
    broker: Broker, request: AlterRequest, make_edit: MakeEdit, context: Context, answer: Callable[..., AnswerT]
) -> tuple[AnswerT, ...]:
    turns = Turns()
    answers = []
    times = Counter((one.resource_type, one.resource_name) for one in request.resources)
    for one in request.resources:
        resource = one.resource_type, one.resource_name
        code, message = ErrorCode.NONE, None
        try:
            if times[resource] > 1:
                raise InvalidRequest("Each resource must appear at most once.")
            await _alter(broker, one, make_edit, is_trial=request.validate_only)
        except ApiError as refused:
            _logger.info("could not alter the configs of resource %s for %s: %s", resource, context, refused)
            code, message = refused.code, str(refused)
        answers.append(
            answer(error_code=code, error_message=message, resource_type=resource[0], resource_name=resource[1])
        )
        if turns.are_over():
            await asyncio.sleep(0)
    return tuple(answers)


async def _alter(broker: Broker, altered: Altered, make_edit: MakeEdit, *, is_trial: bool) -> None:
    name, known = altered.resource_name, broker.configs
    if altered.resource_type == _TOPIC:
        await _alter_topic(broker, name, make_edit(topic_resource(known), altered.configs), is_trial=is_trial)
        return
    if altered.resource_type == _GROUP:
        edit = make_edit(group_resource(broker.settings.groups), altered.configs)
        old_of_group = _configs_of_group(broker, name)
        if is_trial:
            edit(old_of_group)
        else:
            await broker.administration.change_configs(ConfigResource(ConfigScope.GROUP, name), edit)
        return
    _check_is_broker(broker, altered.resource_type, name)
    resource, old = cluster_default_resource(known), known.dynamic_default
    if name != _ALL_BROKERS:
        resource, old = broker_resource(known), known.dynamic
    edit = make_edit(resource, altered.configs)
    if is_trial:
        edit(old)
    else:
        await broker.administration.change_configs(ConfigResource(ConfigScope.BROKER, name), edit)


async def _alter_topic(broker: Broker, name: str, edit: Edit[str], *, is_trial: bool) -> None:
    if not name:
        raise InvalidRequest("Default topic resources are not allowed.")
    broker.check_topic_name(name)
    state = broker.topics.by_name.get(name)
    if state is None:
        # Kafka checks the configs before the topic.
        edit({})
        raise _no_topic(name)
    if is_trial:
        edit(state.entry.configs)
    else:
        await broker.administration.configure(state, edit)


def _configs_of_group(broker: Broker, name: str) -> Mapping[str, str]:
    """The configs of a group, which need not exist."""
    if not name:
        raise InvalidRequest("Group name must not be empty.")
    held = broker.catalog.view.configs.get(ConfigResource(ConfigScope.GROUP, name))
    return {} if held is None else held.configs


def _check_is_broker(broker: Broker, resource_type: int, name: str) -> None:
    if resource_type != _BROKER:
        raise InvalidRequest(f"Resources of type {resource_type} have no configs")
    node_id = str(broker.config.node_id)
    if name not in (_ALL_BROKERS, node_id):
        raise InvalidRequest(f"Unexpected broker id, expected {node_id} or empty string, but received {name}")


def _no_topic(name: str) -> UnknownTopicOrPartition:
    return UnknownTopicOrPartition(f"The topic '{name}' does not exist.")
