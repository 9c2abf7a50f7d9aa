"""The effects of faults on requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from msgspec import structs

from ottla.broker.faults.subjects import Subject
from ottla.broker.interfaces.in_process_requests import Refused
from ottla.broker.requests.answers import settled
from ottla.broker.topic_names import topic_name
from ottla.core.errors import ErrorCode
from ottla.net.connection import Connection
from ottla.wire.codec import encode_response

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.faults.fault import Fault
    from ottla.broker.faults.filters import Filter
    from ottla.broker.faults.gate import Gate
    from ottla.broker.requests.answers import Answer, Handler
    from ottla.broker.requests.context import Context
    from ottla.wire.declare import Request, Sendable

_CHECKSUM_AT: Final = 17
"""The position of the CRC-32C in a batch."""


class Call(NamedTuple):
    """A request and its handler."""

    handler: Handler
    broker: Broker
    request: Any
    context: Context

    async def serve(self, request: Request | None = None) -> Answer:
        answer: Answer = await settled(self.handler(self.broker, request or self.request, self.context))
        return answer

    def connection(self) -> Connection:
        """The connection of the request. An in-process request has none, and gets an error instead."""
        connection = self.context.connection
        if not isinstance(connection, Connection):
            raise Refused(ErrorCode.NETWORK_EXCEPTION, "the connection was dropped")
        return connection


async def delay(call: Call, seconds: float) -> Answer:
    await asyncio.sleep(seconds)
    return await call.serve()


async def hold(call: Call, gate: Gate) -> Answer:
    await gate.passed()
    return await call.serve()


async def drop(call: Call, *, after_effect: bool) -> Answer:
    if after_effect:
        await call.serve()
    call.connection().abort()
    return None


async def throttle(call: Call, seconds: float) -> Answer:
    """Throttle the client as a quota does: send the response at once, with the time during which nothing more is
    served.
    """
    answer = await call.serve()
    call.context.connection.mute_for(seconds)
    if answer is None or "throttle_time_ms" not in answer.__struct_fields__:
        return answer
    return structs.replace(answer, throttle_time_ms=round(seconds * 1000))


async def truncate(call: Call) -> Answer:
    answer = await call.serve()
    if answer is not None:
        whole = b"".join(map(bytes, encode_response(call.context.header, answer)))
        call.connection().end_with(whole[: len(whole) // 2])
    return None


async def corrupt(call: Call, fault: Fault, where: Filter) -> Answer:
    """Corrupt a batch in the response. An empty fetch is answered as usual, and does not count."""
    answer: Any = await call.serve()
    if answer is None or fault.is_spent:
        return cast("Answer", answer)
    topics = []
    for topic in answer.responses:
        name = topic_name(call.broker, topic)
        partitions = []
        for data in topic.partitions:
            is_meant = name is not None and where.covers(Subject(name, data.partition_index))
            if is_meant and data.records and not fault.is_spent:
                fault.strike()
                data = structs.replace(data, records=_damaged(data.records))  # noqa: PLW2901
            partitions.append(data)
        topics.append(structs.replace(topic, partitions=tuple(partitions)))
    return cast("Answer", structs.replace(answer, responses=tuple(topics)))


def _damaged(records: Sendable) -> memoryview:
    damaged = bytearray(bytes(records))
    damaged[_CHECKSUM_AT] ^= 1
    return memoryview(damaged)
