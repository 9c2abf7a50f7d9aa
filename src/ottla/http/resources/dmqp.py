"""DMQP: exposed topics, their shards, and consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from starlette.responses import Response

from ottla.broker.interfaces.protocol_servers import GROUP_PREFIX
from ottla.core.security import AclOperation, ResourceType
from ottla.http.framework.endpoints import Endpoint
from ottla.http.framework.models import Done, RequestStruct, Struct
from ottla.http.framework.problems import Problem

if TYPE_CHECKING:
    from ottla.broker.interfaces.protocol_servers import Exposed, ShardServer
    from ottla.http.framework.endpoints import Call

Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
ConsumerName = Annotated[str, msgspec.Meta(min_length=1, max_length=249)]


class ShardInfo(Struct, frozen=True, kw_only=True):
    shard: int
    """Its partition."""
    host: str
    port: int


class ShardConsumer(Struct, frozen=True, kw_only=True):
    consumer: str
    shards: list[int]


class ExposedTopic(Struct, frozen=True, kw_only=True):
    topic: str
    is_tls: bool
    shards: list[ShardInfo]
    consumers: list[ShardConsumer]


class ExposedTopicList(Struct, frozen=True, kw_only=True):
    topics: list[ExposedTopic]


class Exposure(RequestStruct, frozen=True, kw_only=True):
    ports: tuple[Port, ...] = ()
    """A port per shard; 0, or none at all, uses free ones."""


class Registration(RequestStruct, frozen=True, kw_only=True):
    consumer: ConsumerName


class Lease(Struct, frozen=True, kw_only=True):
    consumer: str
    shards: list[int]
    """The shards assigned to this consumer."""
    lease_ms: int
    """Register again within this time to keep them."""


def _server(call: Call) -> ShardServer:
    server = call.broker.shard_server
    if server is None:
        raise Problem(409, "DMQP is not available on this broker", hint="Use a broker started with `ottla serve`.")
    return server


def _shown(call: Call, exposed: Exposed) -> ExposedTopic:
    # The address this client used, if the shards are served there too.
    reached = call.request.scope.get("server") or ("127.0.0.1", 0)
    return ExposedTopic(
        topic=exposed.topic,
        is_tls=exposed.is_tls,
        shards=[ShardInfo(shard=one.shard, host=one.host or reached[0], port=one.port) for one in exposed.shards],
        consumers=[
            ShardConsumer(consumer=name, shards=list(shards)) for name, shards in sorted(exposed.consumers.items())
        ],
    )


async def list_exposed(call: Call) -> ExposedTopicList:
    seen = [one for one in _server(call).exposed() if call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, one.topic)]
    return ExposedTopicList(topics=[_shown(call, one) for one in seen])


async def show_exposed(call: Call) -> ExposedTopic:
    topic = call.path("topic")
    call.check(AclOperation.DESCRIBE, ResourceType.TOPIC, topic)
    return _shown(call, _server(call).find(topic))


async def expose(call: Call) -> ExposedTopic:
    body = await call.body(Exposure)
    topic = call.path("topic")
    # Clients of these ports get the permissions of this user.
    for operation in (AclOperation.ALTER, AclOperation.READ, AclOperation.WRITE):
        call.check(operation, ResourceType.TOPIC, topic)
    call.check(AclOperation.READ, ResourceType.GROUP, GROUP_PREFIX + topic)
    exposed = await _server(call).expose(topic, body.ports, call.principal)
    call.note("ExposeTopic", topic)
    return _shown(call, exposed)


async def unexpose(call: Call) -> Done:
    topic = call.path("topic")
    call.check(AclOperation.ALTER, ResourceType.TOPIC, topic)
    await _server(call).unexpose(topic)
    call.note("UnexposeTopic", topic)
    return Done()


def _redirect_to_node(call: Call, address: str) -> Response:
    """307: redirect the request to the node that serves the topic."""
    url = call.request.url
    return Response(status_code=307, headers={"location": f"{url.scheme}://{address}{url.path}"})


async def register(call: Call) -> Lease | Response:
    body = await call.body(Registration)
    topic = call.path("topic")
    call.check(AclOperation.READ, ResourceType.TOPIC, topic)
    server = _server(call)
    if (elsewhere := server.elsewhere(topic)) is not None:
        return _redirect_to_node(call, elsewhere)
    shards = server.register(topic, body.consumer)
    return Lease(consumer=body.consumer, shards=list(shards), lease_ms=server.lease_ms)


async def unregister(call: Call) -> Done | Response:
    topic = call.path("topic")
    call.check(AclOperation.READ, ResourceType.TOPIC, topic)
    if (elsewhere := _server(call).elsewhere(topic)) is not None:
        return _redirect_to_node(call, elsewhere)
    _server(call).unregister(topic, call.path("consumer"))
    return Done()


_TOPIC: Final = "/v1/dmqp/{topic}"

ENDPOINTS: Final = (
    Endpoint(
        "POST",
        f"{_TOPIC}/consumers",
        register,
        "Register a consumer of a topic over DMQP, or renew its lease",
        body=Registration,
        answer=Lease,
    ),
    Endpoint("DELETE", f"{_TOPIC}/consumers/{{consumer}}", unregister, "Release a consumer's shards", answer=Done),
    Endpoint("GET", "/v1/dmqp", list_exposed, "All topics exposed over DMQP", answer=ExposedTopicList),
    Endpoint("GET", _TOPIC, show_exposed, "The shards of a topic", answer=ExposedTopic),
    Endpoint("POST", _TOPIC, expose, "Expose a topic over DMQP", body=Exposure, answer=ExposedTopic),
    Endpoint("DELETE", _TOPIC, unexpose, "Unexpose a topic", answer=Done),
)
