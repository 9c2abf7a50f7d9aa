"""Monotonic counters and current values: clients compute rates from two requests, as the console does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.interfaces.partition_facts import opened
from ottla.http.framework.endpoints import Endpoint
from ottla.http.framework.models import Struct

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.http.framework.endpoints import Call

_NO_FAULT: Final = ("accepted", "idle")


class RequestErrors(Struct, frozen=True, kw_only=True):
    api: str
    error: str
    count: int


class Totals(Struct, frozen=True, kw_only=True):
    time_ms: int
    messages: int
    """Total written to the existing partitions (Kafka, REST, DMQP)."""
    kafka_bytes_in: int
    """Bytes received in Kafka requests."""
    kafka_bytes_out: int
    kafka_requests: int
    size_bytes: int
    """Size of all logs on disk."""
    connections: int
    offline_partitions: list[str]
    """Partitions offline after a disk error."""
    request_errors: list[RequestErrors]
    connection_faults: dict[str, int]
    """Connections closed abnormally, by reason."""


async def show_totals(call: Call) -> Totals:
    call.check_cluster()
    broker = call.broker
    messages, size_bytes, offline = await _logs(broker)
    apis = broker.dispatcher.stats
    errors = [
        RequestErrors(api=api.name, error=error, count=count) for api in apis for error, count in api.errors.items()
    ]
    return Totals(
        time_ms=broker.clock.now_ms(),
        messages=messages,
        kafka_bytes_in=sum(api.bytes_in for api in apis),
        kafka_bytes_out=sum(api.bytes_out for api in apis),
        kafka_requests=sum(api.count for api in apis),
        size_bytes=size_bytes,
        connections=len(broker.listener.connections),
        offline_partitions=offline,
        request_errors=sorted(errors, key=lambda one: -one.count),
        connection_faults={what: count for what, count in broker.listener.counts.items() if what not in _NO_FAULT},
    )


async def _logs(broker: Broker) -> tuple[int, int, list[str]]:
    messages = size_bytes = 0
    offline = []
    async for partition in opened(broker.topics.partitions_here()):
        if partition.is_offline:
            offline.append(str(partition.at))
        if not partition.is_unopenable:
            facts = partition.facts
            messages += partition.log.next_offset if partition.is_open else facts.end
            size_bytes += facts.size
    return messages, size_bytes, offline


ENDPOINTS: Final = (Endpoint("GET", "/v1/totals", show_totals, "Counters of the broker", answer=Totals),)
