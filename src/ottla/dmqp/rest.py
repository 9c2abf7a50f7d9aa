"""The HTTP requests of a DMQP client: topics, their shards, and the shards of this consumer."""

from __future__ import annotations

import base64
import http.client
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, unquote, urlsplit

import msgspec

from ottla.dmqp.errors import NotReached, Refused, TooManyConsumers, TopicExists

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

T = TypeVar("T")

_ALREADY_EXISTS: Final = "TOPIC_ALREADY_EXISTS"
_GROUP_FULL: Final = "GROUP_MAX_SIZE_REACHED"


class ShardPlace(msgspec.Struct, frozen=True):
    shard: int
    host: str
    port: int


class ShardConsumer(msgspec.Struct, frozen=True):
    consumer: str
    shards: list[int]


class ShardMap(msgspec.Struct, frozen=True):
    topic: str
    is_tls: bool
    shards: list[ShardPlace]
    consumers: list[ShardConsumer]


class ShardMaps(msgspec.Struct, frozen=True):
    topics: list[ShardMap]


class Lease(msgspec.Struct, frozen=True):
    consumer: str
    shards: list[int]
    lease_ms: int


class _Problem(msgspec.Struct, frozen=True):
    detail: str = ""
    code: str = ""
    hint: str = ""


class _Place(NamedTuple):
    host: str
    port: int
    is_tls: bool
    headers: dict[str, str]


class Rest:
    """Requests to one broker; not thread-safe."""

    def __init__(self, bootstrap: str, timeout_s: float, tls: ssl.SSLContext | None = None) -> None:
        self.bootstrap = bootstrap
        self._place = _parsed(bootstrap)
        self._timeout_s = timeout_s
        self._tls = tls

    def create_topic(self, name: str, shards: int, replication_factor: int) -> None:
        wanted = {"name": name, "partitions": shards, "replication_factor": replication_factor}
        self._ask("POST", "/v1/topics", wanted, Any)

    def expose(self, topic: str, ports: Sequence[int] = ()) -> ShardMap:
        return self._ask("POST", f"/v1/dmqp/{_quoted(topic)}", {"ports": list(ports)}, ShardMap)

    def unexpose(self, topic: str) -> None:
        self._ask("DELETE", f"/v1/dmqp/{_quoted(topic)}", None, Any)

    def maps(self) -> list[ShardMap]:
        return self._ask("GET", "/v1/dmqp", None, ShardMaps).topics

    def map_of(self, topic: str) -> ShardMap:
        return self._ask("GET", f"/v1/dmqp/{_quoted(topic)}", None, ShardMap)

    def register(self, topic: str, consumer: str) -> Lease:
        return self._ask("POST", f"/v1/dmqp/{_quoted(topic)}/consumers", {"consumer": consumer}, Lease)

    def unregister(self, topic: str, consumer: str) -> None:
        self._ask("DELETE", f"/v1/dmqp/{_quoted(topic)}/consumers/{_quoted(consumer)}", None, Any)

    def _ask(self, method: str, path: str, body: object, answer: type[T]) -> T:
        content = b"" if body is None else msgspec.json.encode(body)
        status, received, location = self._sent(self._place, method, path, content)
        if status == http.client.TEMPORARY_REDIRECT:
            # In a cluster: another node serves the topic.
            elsewhere = _parsed(location)._replace(headers=self._place.headers)
            status, received, _ = self._sent(elsewhere, method, path, content)
        if status >= http.client.MULTIPLE_CHOICES:
            raise _refusal(status, received)
        try:
            return msgspec.json.decode(received, type=answer)
        except msgspec.MsgspecError as malformed:
            raise Refused(f"{self.bootstrap} returned a malformed response: {malformed}") from None

    def _sent(self, place: _Place, method: str, path: str, content: bytes) -> tuple[int, bytes, str]:
        headers = place.headers | ({"content-type": "application/json"} if content else {})
        connection = self._connection(place)
        try:
            connection.request(method, path, content or None, headers)
            response = connection.getresponse()
            return response.status, response.read(), response.headers.get("location", "")
        except (OSError, http.client.HTTPException) as failed:
            why = getattr(failed, "strerror", None) or str(failed) or type(failed).__name__
            raise NotReached(
                f"no response from HTTP at {place.host}:{place.port}: {why}; "
                "check the address, and that a broker runs there"
            ) from None
        finally:
            connection.close()

    def _connection(self, place: _Place) -> http.client.HTTPConnection:
        if place.is_tls:
            return http.client.HTTPSConnection(place.host, place.port, timeout=self._timeout_s, context=self._tls)
        return http.client.HTTPConnection(place.host, place.port, timeout=self._timeout_s)


def _parsed(bootstrap: str) -> _Place:
    parts = urlsplit(bootstrap if "://" in bootstrap else f"http://{bootstrap}")
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in ("http", "https") or not parts.hostname or port is None:
        raise ValueError(f"bootstrap must be the HTTP address of a broker, such as 127.0.0.1:8080, got {bootstrap!r}")
    headers = {}
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        headers["authorization"] = f"Basic {base64.b64encode(login).decode()}"
    return _Place(parts.hostname, port, parts.scheme == "https", headers)


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _refusal(status: int, body: bytes) -> Refused | TooManyConsumers | TopicExists:
    try:
        problem = msgspec.json.decode(body, type=_Problem)
    except msgspec.MsgspecError:
        return Refused(f"HTTP status {status}")
    kinds: dict[str, type[Refused | TooManyConsumers | TopicExists]] = {
        _ALREADY_EXISTS: TopicExists,
        _GROUP_FULL: TooManyConsumers,
    }
    return kinds.get(problem.code, Refused)(problem.detail or f"HTTP status {status}")
