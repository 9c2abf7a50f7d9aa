"""Authorization of Fetch, Metadata, DescribeTopicPartitions, CreateTopics and Produce, which need special handling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from msgspec import structs

from ottla.broker.authorization.guarding import LOOKS_AT_CLOCK, Denials, filtered, refused, with_more
from ottla.broker.authorization.refusals import refusal, refusing
from ottla.broker.authorization.rules import CLUSTER, Each, Resource
from ottla.broker.requests.answers import after, settled, then
from ottla.broker.requests.authorized_operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from ottla.broker.requests.turns import Turns, in_turns
from ottla.broker.topic_names import is_by_id_too_early, topic_name
from ottla.core.errors import ErrorCode, ProtocolError
from ottla.storage.catalog.entries import AclOperation, ResourceType
from ottla.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
)
from ottla.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ottla.broker.authorization.authorizer import Authorizer
    from ottla.broker.broker import Broker
    from ottla.broker.requests.answers import Handler, NowOrLater
    from ottla.broker.requests.context import Context
    from ottla.broker.requests.turns import InTurns
    from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
    from ottla.wire.messages.delete_topics import DeleteTopicsRequest

_TOPIC: Final = ResourceType.TOPIC
# Local names: looking up an enum member takes longer than looking up an ACL.
_READ: Final = AclOperation.READ
_WRITE: Final = AclOperation.WRITE
_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_NO_SESSION: Final = 0
_WITHOUT_SESSION: Final = -1


# Produce

WRITE_TOPICS: Final = Each(AclOperation.WRITE, _TOPIC, "topic_data", "responses", topic_name)


def produce(
    authorizer: Authorizer, handler: Handler, broker: Broker, request: ProduceRequest, context: Context
) -> NowOrLater:
    transaction = request.transactional_id
    if transaction is None or authorizer.check(context, _WRITE, ResourceType.TRANSACTIONAL_ID, transaction):
        # By far the most frequent request: an allowed one causes no allocations.
        for topic in request.topic_data:
            name = topic.name or topic_name(broker, topic)
            if name is not None and not authorizer.is_allowed(context, _WRITE, _TOPIC, name):
                break
        else:
            return handler(broker, request, context)
        answer = filtered(WRITE_TOPICS, authorizer, handler, broker, request, context)
    else:
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        answer = refused(ProduceResponse, request, code, context)
    # With acks=0 a denied client is disconnected, as by Kafka.
    return _hang_up_after(answer) if request.acks == 0 else answer


async def _hang_up_after(answer: NowOrLater) -> NoReturn:
    await settled(answer)
    raise ProtocolError("a produce request with acks=0 was not authorized")


# Fetch


def fetch(
    authorizer: Authorizer, handler: Handler, broker: Broker, request: FetchRequest, context: Context
) -> NowOrLater:
    replica = request.replica_id if request.replica_id >= 0 else request.replica_state.replica_id
    if replica >= 0:
        return _fetch_of_broker(authorizer, handler, broker, request, context)
    return after(
        _unreadable(authorizer, broker, request.topics, context),
        lambda denied: _fetch_rest(authorizer, handler, broker, request, context, denied),
    )


def _fetch_rest(  # noqa: PLR0913
    authorizer: Authorizer,
    handler: Handler,
    broker: Broker,
    request: FetchRequest,
    context: Context,
    denied: Mapping[int, FetchableTopicResponse],
) -> NowOrLater:
    is_in_session = request.session_epoch > 0
    if denied and is_in_session:
        # The client's next fetch is a full fetch, and its response includes the denied partitions.
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=())
    if denied:
        left = tuple(topic for at, topic in enumerate(request.topics) if at not in denied)
        not_fetched = tuple(denied.values())
        if not left:
            return FetchResponse(responses=not_fetched)
        # Served without a session: the client would consider the denied partitions part of the session, the broker
        # would not.
        request = structs.replace(request, topics=left, session_id=_NO_SESSION, session_epoch=_WITHOUT_SESSION)
        answer = handler(broker, structs.replace(request, max_wait_ms=0), context)
        return then(answer, lambda response: with_more(response, "responses", not_fetched))
    answer = handler(broker, request, context)
    if is_in_session:
        # A session remembers partitions, and permissions may have changed since.
        return then(answer, lambda response: _if_still_allowed(authorizer, broker, response, context))
    if isinstance(answer, FetchResponse):
        return answer
    return then(answer, lambda response: _still_authorized(authorizer, broker, response, context))


def _fetch_of_broker(
    authorizer: Authorizer, handler: Handler, broker: Broker, request: FetchRequest, context: Context
) -> NowOrLater:
    if authorizer.check_cluster(context, AclOperation.CLUSTER_ACTION):
        return handler(broker, request, context)
    return FetchResponse(responses=_not_fetched(request.topics, context))


def _not_fetched(topics: Iterable[FetchTopic], context: Context) -> tuple[FetchableTopicResponse, ...]:
    return tuple(refusal(FetchableTopicResponse, topic, _DENIED, context.version) for topic in topics)


def _unreadable(
    authorizer: Authorizer, broker: Broker, topics: Sequence[FetchTopic], context: Context
) -> InTurns[dict[int, FetchableTopicResponse]]:
    turns = Turns()
    denials = Denials(authorizer, context)
    denied = {}
    for at, topic in enumerate(topics):
        name = topic_name(broker, topic)
        if name is not None and not denials.check(_READ, Resource(_TOPIC, name)):
            denied[at] = yield from refusing(FetchableTopicResponse, topic, _DENIED, context.version, turns)
        if at % LOOKS_AT_CLOCK == 0 and at and turns.are_over():
            yield
    denials.note()
    return denied


def _if_still_allowed(
    authorizer: Authorizer, broker: Broker, response: FetchResponse, context: Context
) -> FetchResponse:
    if all(_may_read(authorizer, broker, topic, context) for topic in response.responses):
        return response
    return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=())


def _still_authorized(
    authorizer: Authorizer, broker: Broker, response: FetchResponse, context: Context
) -> FetchResponse:
    """Filter the response again: an ACL may have changed while the fetch waited."""
    if all(_may_read(authorizer, broker, one, context) for one in response.responses):
        return response
    topics = tuple(
        one if _may_read(authorizer, broker, one, context) else _without_records(one, context)
        for one in response.responses
    )
    # Served without a session, so the client's next fetch is a full fetch.
    return structs.replace(response, responses=topics, session_id=_NO_SESSION)


def _may_read(authorizer: Authorizer, broker: Broker, topic: object, context: Context) -> bool:
    name = topic_name(broker, topic)
    return name is None or authorizer.check(context, _READ, _TOPIC, name)


def _without_records(topic: FetchableTopicResponse, context: Context) -> FetchableTopicResponse:
    partitions = (refusal(PartitionData, one.partition_index, _DENIED, context.version) for one in topic.partitions)
    return structs.replace(topic, partitions=tuple(partitions))


# Metadata


def metadata(
    authorizer: Authorizer, handler: Handler, broker: Broker, request: MetadataRequest, context: Context
) -> NowOrLater:
    if is_by_id_too_early(request, context.version):
        return handler(broker, request, context)  # the handler rejects it
    wants_all = request.topics is None or (context.version == 0 and not request.topics)

    def go_on(denied: dict[int, MetadataResponseTopic]) -> NowOrLater:
        asked = request
        if denied:
            left = tuple(wanted for at, wanted in enumerate(request.topics or ()) if at not in denied)
            # Since version 1 an empty list means no topics; before, it means all.
            asked = structs.replace(request, topics=left if left or context.version > 0 else None)
        hides_all = asked.topics is None and not wants_all

        def finish(response: MetadataResponse) -> MetadataResponse:
            topics = () if hides_all else response.topics
            if wants_all:
                topics = tuple(one for one in topics if authorizer.may_see(context, one.name))
            response = structs.replace(response, topics=(*topics, *denied.values()))
            return _with_operations(authorizer, request, response, context)

        return then(handler(broker, asked, context), finish)

    return after(_undescribed(authorizer, broker, request, context), go_on)


def _undescribed(
    authorizer: Authorizer, broker: Broker, request: MetadataRequest, context: Context
) -> InTurns[dict[int, MetadataResponseTopic]]:
    turns = Turns()
    denials = Denials(authorizer, context)
    denied = {}
    for at, wanted in enumerate(request.topics or ()):
        denial = _metadata_denial(denials, broker, request, wanted, context.version)
        if denial is not None:
            denied[at] = denial
        if at % LOOKS_AT_CLOCK == 0 and at and turns.are_over():
            yield
    denials.note()
    return denied


def _metadata_denial(
    denials: Denials, broker: Broker, request: MetadataRequest, wanted: MetadataRequestTopic, version: int
) -> MetadataResponseTopic | None:
    name = topic_name(broker, wanted)
    if name is None:
        return None
    topic = Resource(_TOPIC, name)
    if not denials.check(AclOperation.DESCRIBE, topic):
        return refusal(MetadataResponseTopic, wanted, _DENIED, version)
    would_create = request.allow_auto_topic_creation and broker.config.auto_create_topics
    if would_create and name not in broker.topics.by_name and not denials.may(AclOperation.CREATE, CLUSTER):
        may_create = denials.check(AclOperation.CREATE, topic)
        return None if may_create else refusal(MetadataResponseTopic, wanted, _DENIED, version)
    return None


def _with_operations(
    authorizer: Authorizer, request: MetadataRequest, response: MetadataResponse, context: Context
) -> MetadataResponse:
    if request.include_cluster_authorized_operations:
        bits = authorizer.bits(context, *CLUSTER, CLUSTER_OPERATIONS)
        response = structs.replace(response, cluster_authorized_operations=bits)
    if request.include_topic_authorized_operations:
        topics = tuple(_topic_with_operations(authorizer, one, context) for one in response.topics)
        response = structs.replace(response, topics=topics)
    return response


TopicT = TypeVar("TopicT", MetadataResponseTopic, DescribeTopicPartitionsResponseTopic)


def _topic_with_operations(authorizer: Authorizer, topic: TopicT, context: Context) -> TopicT:
    if topic.error_code in (_DENIED, ErrorCode.UNKNOWN_TOPIC_ID):
        return topic
    bits = authorizer.bits(context, _TOPIC, topic.name or "", TOPIC_OPERATIONS)
    return structs.replace(topic, topic_authorized_operations=bits)


def describe_topic_partitions(
    authorizer: Authorizer,
    handler: Handler,
    broker: Broker,
    request: DescribeTopicPartitionsRequest,
    context: Context,
) -> NowOrLater:
    wants_all = not request.topics

    def go_on(hidden: dict[int, DescribeTopicPartitionsResponseTopic]) -> NowOrLater:
        left = tuple(one for at, one in enumerate(request.topics) if at not in hidden)
        if hidden and not left:
            return DescribeTopicPartitionsResponse(topics=tuple(hidden.values()), next_cursor=None)

        def finish(response: DescribeTopicPartitionsResponse) -> InTurns[DescribeTopicPartitionsResponse]:
            turns = Turns()
            shown = []
            for one in response.topics:
                if not wants_all or authorizer.may_see(context, one.name):
                    shown.append(_topic_with_operations(authorizer, one, context))
                if turns.are_over():
                    yield
            return structs.replace(response, topics=(*shown, *hidden.values()))

        answer = handler(broker, structs.replace(request, topics=left), context)
        return then(answer, lambda response: in_turns(finish(response)))

    return after(_unlisted(authorizer, request, context), go_on)


def _unlisted(
    authorizer: Authorizer, request: DescribeTopicPartitionsRequest, context: Context
) -> InTurns[dict[int, DescribeTopicPartitionsResponseTopic]]:
    turns = Turns()
    denials = Denials(authorizer, context)
    hidden = {}
    for at, one in enumerate(request.topics):
        if not denials.check(AclOperation.DESCRIBE, Resource(_TOPIC, one.name)):
            hidden[at] = refusal(DescribeTopicPartitionsResponseTopic, one, _DENIED, context.version)
        if at % LOOKS_AT_CLOCK == 0 and at and turns.are_over():
            yield
    denials.note()
    return hidden


# CreateTopics

CREATE_TOPICS: Final = Each(AclOperation.CREATE, _TOPIC, "topics", "topics", or_on_cluster=True)


def create_topics(
    authorizer: Authorizer, handler: Handler, broker: Broker, request: CreateTopicsRequest, context: Context
) -> NowOrLater:
    answer = filtered(CREATE_TOPICS, authorizer, handler, broker, request, context)
    return then(answer, lambda response: _without_hidden_configs(authorizer, response, context))


def _without_hidden_configs(
    authorizer: Authorizer, response: CreateTopicsResponse, context: Context
) -> CreateTopicsResponse:
    """Permission to create a topic does not include its configs (KIP-525)."""
    topics = [
        one
        if one.error_code or authorizer.is_allowed(context, AclOperation.DESCRIBE_CONFIGS, _TOPIC, one.name)
        else structs.replace(one, topic_config_error_code=_DENIED, num_partitions=-1, replication_factor=-1, configs=())
        for one in response.topics
    ]
    return structs.replace(response, topics=tuple(topics))


# DeleteTopics

_DELETE_TOPICS: Final = Each(AclOperation.DELETE, _TOPIC, "topics", "responses", topic_name)
_DELETE_TOPICS_BY_NAME: Final = Each(
    AclOperation.DELETE, _TOPIC, "topic_names", "responses", name=lambda _, name: str(name)
)


def delete_topics(
    authorizer: Authorizer,
    handler: Handler,
    broker: Broker,
    request: DeleteTopicsRequest,
    context: Context,
) -> NowOrLater:
    each = _DELETE_TOPICS if request.topics else _DELETE_TOPICS_BY_NAME
    return filtered(each, authorizer, handler, broker, request, context)
