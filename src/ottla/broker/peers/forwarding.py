"""Forwards in-process requests to the leader or coordinator, so that other protocols see the whole cluster on any node.

Only in-process requests are forwarded. A Kafka client must connect to the right node, and gets an error
otherwise. Authorization is done before: it wraps this, and this wraps a handler.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from msgspec.structs import replace

from ottla.broker.interfaces.in_process_requests import LocalClient, NodeAway
from ottla.broker.interfaces.partition_facts import node_to_ask
from ottla.broker.requests.answers import settled
from ottla.broker.topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ottla.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ottla.broker.broker import Broker
    from ottla.broker.replication.replication import Replication
    from ottla.broker.requests.answers import Handler, NowOrLater
    from ottla.broker.requests.context import Context
    from ottla.wire.codec import RequestFor
    from ottla.wire.declare import Request, Response
    from ottla.wire.messages.produce import ProduceRequest

Parts = dict[int, Any]
"""The request for each node."""

_WAIT_MS: Final = 100
"""The maximum wait of a fetch from several nodes: one node's data is not delayed longer by the others."""


class _OfGroup(Protocol):
    @property
    def group_id(self) -> str: ...


class _OfTransaction(Protocol):
    @property
    def transactional_id(self) -> str | None: ...


class ForwardingRule(NamedTuple):
    """How a request is split between nodes, and how their responses are merged."""

    share_out: Callable[[Broker, Any, LocalClient], Parts]
    join: Callable[[list[Any]], Any]
    failed: Callable[[Any, NodeAway], Any] | None = None
    """The replacement of a missing response, if the others are still useful."""


def forwarding(rule: ForwardingRule, handler: Handler) -> Handler:
    def answer(broker: Broker, request: Request, context: Context) -> NowOrLater:
        client = context.connection
        if broker.replication is None or not isinstance(client, LocalClient) or not client.forwards:
            return handler(broker, request, context)
        parts = rule.share_out(broker, request, client)
        me = broker.replication.node_id
        if parts.keys() <= {me}:
            return handler(broker, request, context)
        return _asked(rule, parts, broker.replication, lambda part: handler(broker, part, context), context.version)

    return answer


async def _asked(
    rule: ForwardingRule, parts: Parts, replication: Replication, here: Callable[[Any], object], version: int
) -> object:
    async def ask(node: int, part: RequestFor[Response]) -> object:
        if node == replication.node_id:
            return await settled(here(part))
        try:
            return await replication.others.ask(node, part, version)
        except NodeAway as away:
            if rule.failed is None:
                raise
            return rule.failed(part, away)

    return rule.join(await asyncio.gather(*(ask(node, part) for node, part in parts.items())))


# By partition


class Fields(NamedTuple):
    """The field names of an API's request and response."""

    topics: str
    name: str
    partitions: str
    number: str
    answered: str
    answered_name: str
    answered_partitions: str


def _by_leader(fields: Fields) -> Callable[[Broker, Any, LocalClient], Parts]:
    def share_out(broker: Broker, request: Request, client: LocalClient) -> Parts:  # noqa: ARG001
        shares: dict[int, dict[Any, list[Any]]] = {}
        for topic in getattr(request, fields.topics):
            name = getattr(topic, fields.name)
            for part in getattr(topic, fields.partitions):
                node = _leader(broker, name, getattr(part, fields.number))
                shares.setdefault(node, {}).setdefault(name, []).append(part)
        topics = {getattr(topic, fields.name): topic for topic in getattr(request, fields.topics)}
        return {
            node: replace(
                request,
                **{
                    fields.topics: tuple(
                        replace(topics[name], **{fields.partitions: tuple(parts)}) for name, parts in share.items()
                    )
                },
            )
            for node, share in shares.items()
        }

    return share_out


def _leader(broker: Broker, topic: str, partition: int) -> int:
    """The partition's leader; this node for an unknown partition: its handler reports the error."""
    state = broker.topics.by_name.get(topic)
    if state is None or not 0 <= partition < len(state.partitions):
        return broker.config.node_id
    return node_to_ask(broker, state.partitions[partition])


def _joined_topics(fields: Fields) -> Callable[[list[Any]], Any]:
    def join(answers: list[Any]) -> object:
        topics: dict[Any, Any] = {}
        for topic in (topic for answer in answers for topic in getattr(answer, fields.answered)):
            name = getattr(topic, fields.answered_name)
            known = () if name not in topics else getattr(topics[name], fields.answered_partitions)
            parts = (*known, *getattr(topic, fields.answered_partitions))
            topics[name] = replace(topic, **{fields.answered_partitions: parts})
        return replace(answers[0], **{fields.answered: tuple(topics.values())})

    return join


_PRODUCE: Final = Fields("topic_data", "name", "partition_data", "index", "responses", "name", "partition_responses")
_FETCH: Final = Fields("topics", "topic", "partitions", "partition", "responses", "topic", "partitions")
_OFFSETS: Final = Fields("topics", "name", "partitions", "partition_index", "topics", "name", "partitions")


def _share_out_fetch(broker: Broker, request: Request, client: LocalClient) -> Parts:
    parts = _by_leader(_FETCH)(broker, request, client)
    if len(parts) == 1:
        return parts
    return {node: replace(part, max_wait_ms=min(part.max_wait_ms, _WAIT_MS)) for node, part in parts.items()}


def _not_produced(request: ProduceRequest, away: NodeAway) -> ProduceResponse:
    def refused(index: int) -> PartitionProduceResponse:
        return PartitionProduceResponse(index=index, error_code=away.code, base_offset=-1, error_message=str(away))

    return ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                name=topic.name, partition_responses=tuple(refused(part.index) for part in topic.partition_data)
            )
            for topic in request.topic_data
        )
    )


# By group, and by transactional id


def _coordinator(broker: Broker, key: str, client: LocalClient, topic: str = CONSUMER_OFFSETS) -> int:
    """The coordinator; this node if there is none: its handler reports the error."""
    coordinator = broker.topology.coordinator_of(topic, key, client)
    return broker.config.node_id if coordinator is None else coordinator.id


def _whole(broker: Broker, request: _OfGroup, client: LocalClient) -> Parts:
    return {_coordinator(broker, request.group_id, client): request}


def _by_coordinator(
    field: str, key: Callable[[Any], str], topic: str = CONSUMER_OFFSETS
) -> Callable[[Broker, Any, LocalClient], Parts]:
    def share_out(broker: Broker, request: Request, client: LocalClient) -> Parts:
        shares: dict[int, list[Any]] = {}
        for each in getattr(request, field):
            shares.setdefault(_coordinator(broker, key(each), client, topic), []).append(each)
        return {node: replace(request, **{field: tuple(those)}) for node, those in shares.items()}

    return share_out


def _by_transactional_id(broker: Broker, request: _OfTransaction, client: LocalClient) -> Parts:
    if request.transactional_id is None:
        return {broker.config.node_id: request}
    return {_coordinator(broker, request.transactional_id, client, TRANSACTION_STATE): request}


def _all_nodes(broker: Broker, request: object, client: LocalClient) -> Parts:  # noqa: ARG001
    return dict.fromkeys(broker.topology.node_ids, request)


def _joined(field: str) -> Callable[[list[Any]], Any]:
    def join(answers: list[Any]) -> object:
        refused = next((answer for answer in answers if getattr(answer, "error_code", 0)), None)
        found: Iterable[Any] = (each for answer in answers for each in getattr(answer, field))
        return refused or replace(answers[0], **{field: tuple(found)})

    return join


def _only(answers: list[Any]) -> object:
    [answer] = answers
    return answer


# Rules

PRODUCE: Final[ForwardingRule] = ForwardingRule(_by_leader(_PRODUCE), _joined_topics(_PRODUCE), _not_produced)
FETCH: Final[ForwardingRule] = ForwardingRule(_share_out_fetch, _joined_topics(_FETCH))
OFFSETS_BY_LEADER: Final[ForwardingRule] = ForwardingRule(_by_leader(_OFFSETS), _joined_topics(_OFFSETS))
TO_GROUP_COORDINATOR: Final[ForwardingRule] = ForwardingRule(_whole, _only)
TO_TRANSACTION_COORDINATOR: Final[ForwardingRule] = ForwardingRule(_by_transactional_id, _only)


def by_group(asked: str, group_id: Callable[[Any], str], answered: str) -> ForwardingRule:
    """Route each group in the request to its coordinator."""
    return ForwardingRule(_by_coordinator(asked, group_id), _joined(answered))


def by_transaction(asked: str, answered: str) -> ForwardingRule:
    """Route each transactional id in the request to its coordinator."""
    return ForwardingRule(_by_coordinator(asked, str, TRANSACTION_STATE), _joined(answered))


def to_all_nodes(answered: str) -> ForwardingRule:
    return ForwardingRule(_all_nodes, _joined(answered))
