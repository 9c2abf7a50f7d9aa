"""Answers matching entries of a request with an error code, and serves the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from msgspec import structs

from ottla.broker.authorization.guarding import with_more
from ottla.broker.authorization.refusals import part_of, refusal
from ottla.broker.faults.effects import drop
from ottla.broker.faults.subjects import Subject, index_of, partition_field, partitions_in, subjects_of
from ottla.broker.requests.api_table import SERVED
from ottla.core.errors import ErrorCode
from ottla.wire import apis
from ottla.wire.apis import response_type

if TYPE_CHECKING:
    from ottla.broker.faults.effects import Call
    from ottla.broker.faults.filters import Filter
    from ottla.broker.requests.answers import Answer


async def refuse(call: Call, code: ErrorCode, where: Filter) -> Answer:
    """Answer matching partitions with an error; other partitions of the request are served."""
    if getattr(call.request, "acks", 1) == 0:
        # With acks=0 the client is disconnected, as by Kafka.
        return await drop(call, after_effect=False)
    if call.request.API.key == apis.METADATA.key:
        return await _refuse_metadata(call, code, where)
    served = SERVED[call.request.API.key]
    if served.by_topic is not None:
        return await _refuse_topics(call, served.by_topic, code, where)
    return refusal(response_type(call.request.API), call.request, code, call.context.version)


async def _refuse_metadata(call: Call, code: ErrorCode, where: Filter) -> Answer:
    """The response includes the brokers nevertheless: without them a client could not retry."""
    answer: Any = await call.serve(structs.replace(call.request, allow_auto_topic_creation=False))
    topics = tuple(
        structs.replace(topic, error_code=code, partitions=()) if where.topic in (None, topic.name) else topic
        for topic in answer.topics
    )
    return cast("Answer", structs.replace(answer, topics=topics))


async def _refuse_topics(call: Call, fields: tuple[str, str], code: ErrorCode, where: Filter) -> Answer:
    asked, answered = fields
    meant, left = _parted(call, asked, where)
    response = response_type(call.request.API)
    version = call.context.version
    refused = tuple(refusal(part_of(response, answered, version), topic, code, version) for topic in meant)
    if not left:
        return structs.replace(refusal(response, None, ErrorCode.NONE, version), **{answered: refused})
    request = structs.replace(call.request, **{asked: left})
    if call.request.API.key == apis.FETCH.key:
        request = structs.replace(request, max_wait_ms=0)
    answer = await call.serve(request)
    return None if answer is None else with_more(answer, answered, refused)


def _parted(call: Call, asked: str, where: Filter) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Split the topics into matching and other ones, each with its partitions."""
    meant: list[Any] = []
    left: list[Any] = []
    for topic in getattr(call.request, asked):
        [subject, *_] = subjects_of(call.broker, structs.replace(call.request, **{asked: (topic,)})) or [Subject("", 0)]
        field = partition_field(topic)
        if field is None:
            (meant if where.covers(subject) else left).append(topic)
            continue
        hit = tuple(one for one in partitions_in(topic) if where.covers(Subject(subject.topic, index_of(one))))
        missed = tuple(one for one in partitions_in(topic) if one not in hit)
        if hit:
            meant.append(structs.replace(topic, **{field: hit}))
        if missed:
            left.append(structs.replace(topic, **{field: missed}))
    return tuple(meant), tuple(left)
