"""Paths of Confluent's REST Proxy, for tools that speak it: v3 and v2 produce, and the lists that lead to them.

Not served: schemas in requests, v2 consumers, and the other resources of v3; see docs/rest-proxy.md.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Final, Literal

import msgspec
from starlette.responses import Response

from ottla.core.errors import ApiError
from ottla.core.security import AclOperation, ResourceType
from ottla.http.framework.bodies import BodyRefused
from ottla.http.framework.endpoints import JSON, Endpoint, decode_json, problem_of_body
from ottla.http.framework.models import PartitionIndex, RequestStruct, Struct
from ottla.http.framework.problems import BadRequest, Problem, problem_of
from ottla.http.records.payloads import Encoding, read
from ottla.http.records.produce import ReadyMessage, write_all
from ottla.http.resources.topics import is_own, topic_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from ottla.broker.topics import TopicState
    from ottla.http.framework.endpoints import Call

_BINARY: Final = "application/vnd.kafka.binary."
_SCHEMAS: Final = (
    "application/vnd.kafka.avro.",
    "application/vnd.kafka.jsonschema.",
    "application/vnd.kafka.protobuf.",
)
_ENCODINGS: Final[dict[str, Encoding]] = {"BINARY": "base64", "JSON": "json", "STRING": "utf8"}


class RestProxyError(Struct, frozen=True, kw_only=True):
    error_code: int
    message: str


class V3Header(RequestStruct, frozen=True, kw_only=True):
    name: str
    value: str | None = None
    """Base64."""


class V3Data(RequestStruct, frozen=True, kw_only=True):
    type: Literal["BINARY", "JSON", "STRING"]
    data: msgspec.Raw


class V3Record(RequestStruct, frozen=True, kw_only=True):
    partition_id: PartitionIndex | None = None
    headers: tuple[V3Header, ...] = ()
    key: V3Data | None = None
    value: V3Data | None = None
    timestamp: str | None = None
    """ISO 8601."""


class V3Size(Struct, frozen=True, kw_only=True):
    type: str
    size: int


class V3Written(Struct, frozen=True, kw_only=True):
    error_code: int
    cluster_id: str
    topic_name: str
    partition_id: int
    offset: int
    timestamp: str | None
    key: V3Size | None
    value: V3Size | None


class V3Cluster(Struct, frozen=True, kw_only=True):
    kind: str = "KafkaCluster"
    cluster_id: str


class V3Clusters(Struct, frozen=True, kw_only=True):
    kind: str = "KafkaClusterList"
    data: list[V3Cluster]


class V3Topic(Struct, frozen=True, kw_only=True):
    kind: str = "KafkaTopic"
    cluster_id: str
    topic_name: str
    is_internal: bool
    partitions_count: int


class V3Topics(Struct, frozen=True, kw_only=True):
    kind: str = "KafkaTopicList"
    data: list[V3Topic]


class V2Record(RequestStruct, frozen=True, kw_only=True):
    key: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    partition: PartitionIndex | None = None


class V2Records(RequestStruct, frozen=True, kw_only=True):
    records: list[V2Record]


class V2Offset(Struct, frozen=True, kw_only=True):
    partition: int
    offset: int
    error_code: int | None = None
    error: str | None = None


class V2Written(Struct, frozen=True, kw_only=True):
    offsets: list[V2Offset]
    key_schema_id: int | None = None
    value_schema_id: int | None = None


class V2Partition(Struct, frozen=True, kw_only=True):
    partition: int
    leader: int


class V2Topic(Struct, frozen=True, kw_only=True):
    name: str
    partitions: list[V2Partition]


def _as_proxy(
    handle: Callable[[Call], Awaitable[msgspec.Struct | Response]],
) -> Callable[[Call], Awaitable[msgspec.Struct | Response]]:
    """Errors in the form of the REST Proxy."""

    @wraps(handle)
    async def handled(call: Call) -> msgspec.Struct | Response:
        try:
            return await handle(call)
        except ApiError as refused:
            problem = problem_of(refused)
        except Problem as refused:
            problem = refused
        error = RestProxyError(error_code=problem.status, message=str(problem))
        return Response(msgspec.json.encode(error), problem.status, media_type=JSON)

    return handled


def _check_cluster_id(call: Call) -> str:
    wanted, cluster_id = call.path("cluster_id"), call.broker.cluster_id
    if wanted != cluster_id:
        raise Problem(404, f"cluster {wanted} is not known; this is {cluster_id}")
    return cluster_id


def _visible(call: Call) -> Iterator[tuple[str, TopicState]]:
    for name, state in sorted(call.broker.topics.by_name.items()):
        if call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            yield name, state


@_as_proxy
async def list_clusters(call: Call) -> V3Clusters:
    return V3Clusters(data=[V3Cluster(cluster_id=call.broker.cluster_id)])


@_as_proxy
async def list_v3_topics(call: Call) -> V3Topics:
    cluster_id = _check_cluster_id(call)
    topics = [
        V3Topic(
            cluster_id=cluster_id, topic_name=name, is_internal=is_own(state), partitions_count=len(state.partitions)
        )
        for name, state in _visible(call)
    ]
    return V3Topics(data=topics)


@_as_proxy
async def produce_v3(call: Call) -> Response:
    cluster_id, topic = _check_cluster_id(call), call.path("topic")
    call.broker.check_topic_name(topic)
    records = [decode_json(one, V3Record, f"record {number}") for number, one in enumerate(await _documents(call), 1)]
    ready = [_ready_v3(record, f"record {number}") for number, record in enumerate(records, 1)]
    written = await write_all(call, topic, ready)
    answers = [
        V3Written(
            error_code=200,
            cluster_id=cluster_id,
            topic_name=topic,
            partition_id=at.partition,
            offset=at.offset,
            timestamp=record.timestamp,
            key=_size(record.key, one.key),
            value=_size(record.value, one.value),
        )
        for record, one, at in zip(records, ready, written.offsets, strict=True)
    ]
    return Response(b"\n".join(map(msgspec.json.encode, answers)), media_type=JSON)


async def _documents(call: Call) -> list[bytes]:
    """The JSON documents of the body: a client may send several, one after the other."""
    limit = call.http_state.config.max_body_bytes
    with call.receive(limit) as body:
        try:
            content = await body.read_all(limit)
        except BodyRefused as refused:
            raise problem_of_body(refused, limit) from None
    try:
        text = content.decode()
        return list(_split(text)) or [b""]
    except (ValueError, RecursionError) as malformed:
        raise BadRequest(f"the body is not JSON: {malformed}") from None


def _split(text: str) -> Iterator[bytes]:
    decoder, at = json.JSONDecoder(), 0
    while rest := text[at:].lstrip():
        start = len(text) - len(rest)
        _, at = decoder.raw_decode(text, start)
        yield text[start:at].encode()


def _ready_v3(record: V3Record, what: str) -> ReadyMessage:
    try:
        return ReadyMessage(
            what=what,
            partition=record.partition_id,
            timestamp=None if record.timestamp is None else _milliseconds(record.timestamp),
            key=_bytes(record.key),
            value=_bytes(record.value),
            headers=[(one.name, read(msgspec.Raw(msgspec.json.encode(one.value)), "base64")) for one in record.headers],
        )
    except (ValueError, OverflowError) as wrong:
        raise BadRequest(f"{what}: {wrong}") from None


def _bytes(given: V3Data | None) -> bytes | None:
    if given is None or bytes(given.data) == b"null":
        return None
    return read(given.data, _ENCODINGS[given.type])


def _size(given: V3Data | None, data: bytes | None) -> V3Size | None:
    return None if given is None else V3Size(type=given.type, size=0 if data is None else len(data))


def _milliseconds(text: str) -> int:
    at = datetime.fromisoformat(text)
    moment = round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    if moment < 0:
        raise ValueError(f"timestamp {text} is before 1970")
    return moment


@_as_proxy
async def list_v2_topics(call: Call) -> Response:
    return Response(msgspec.json.encode([name for name, _ in _visible(call)]), media_type=JSON)


@_as_proxy
async def show_v2_topic(call: Call) -> V2Topic:
    state = topic_of(call)
    partitions = [V2Partition(partition=one.at.partition, leader=one.leader[0]) for one in state.partitions]
    return V2Topic(name=state.name, partitions=partitions)


@_as_proxy
async def produce_v2(call: Call) -> V2Written:
    name = call.path("name")
    call.broker.check_topic_name(name)
    kind = call.request.headers.get("content-type", "").lower()
    if kind.startswith(_SCHEMAS):
        raise Problem(415, "records with schemas are not supported here; send binary or json, or use a Kafka client")
    encoding: Encoding = "base64" if kind.startswith(_BINARY) else "json"
    records = (await call.body(V2Records)).records
    if not records:
        raise BadRequest("the body has no records")
    ready = [_ready_v2(record, encoding, f"record {number}") for number, record in enumerate(records, 1)]
    written = await write_all(call, name, ready)
    return V2Written(offsets=[V2Offset(partition=one.partition, offset=one.offset) for one in written.offsets])


def _ready_v2(record: V2Record, encoding: Encoding, what: str) -> ReadyMessage:
    def data(given: msgspec.Raw | msgspec.UnsetType) -> bytes | None:
        if isinstance(given, msgspec.UnsetType) or bytes(given) == b"null":
            return None
        return read(given, encoding)

    try:
        key, value = data(record.key), data(record.value)
    except ValueError as wrong:
        raise BadRequest(f"{what}: {wrong}") from None
    return ReadyMessage(what=what, partition=record.partition, timestamp=None, key=key, value=value, headers=[])


ENDPOINTS: Final = tuple(
    endpoint._replace(refusal=RestProxyError)
    for endpoint in (
        Endpoint("GET", "/v3/clusters", list_clusters, "REST Proxy v3: this cluster", answer=V3Clusters),
        Endpoint(
            "GET", "/v3/clusters/{cluster_id}/topics", list_v3_topics, "REST Proxy v3: all topics", answer=V3Topics
        ),
        Endpoint(
            "POST",
            "/v3/clusters/{cluster_id}/topics/{topic}/records",
            produce_v3,
            "REST Proxy v3: write records",
            body=V3Record,
            answer=V3Written,
        ),
        Endpoint("GET", "/topics", list_v2_topics, "REST Proxy v2: the names of all topics", streams=JSON),
        Endpoint("GET", "/topics/{name}", show_v2_topic, "REST Proxy v2: a topic", answer=V2Topic),
        Endpoint(
            "POST", "/topics/{name}", produce_v2, "REST Proxy v2: write records", body=V2Records, answer=V2Written
        ),
    )
)
