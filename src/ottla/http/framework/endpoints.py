"""Declarations of endpoints, and the input of their handlers.

get("/v1/topics/{name}", show_topic, answer=Topic, summary="One topic")

The routes and the OpenAPI description are generated from these declarations. A handler returns a
struct, or a response object for streams.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, get_origin
from urllib.parse import unquote

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from ottla.broker.interfaces.in_process_requests import LocalClient
from ottla.core.errors import ApiError, ErrorCode
from ottla.core.security import ANONYMOUS, CLUSTER_NAME, AclOperation, ResourceType
from ottla.http.framework.bodies import Bodies, Body, BodyRefused
from ottla.http.framework.explaining import explained
from ottla.http.framework.problems import BadRequest, Problem, problem_of, problem_response
from ottla.wire.apis import FETCH

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from ottla.broker.broker import Broker
    from ottla.http.config import HttpConfig
    from ottla.http.framework.stats import HttpStats
    from ottla.http.login.authentication import Login
    from ottla.http.monitoring.history import Sampler
    from ottla.http.registry.app import Registry
    from ottla.wire.codec import RequestFor
    from ottla.wire.declare import Response as KafkaResponse

ResponseT = TypeVar("ResponseT", bound="KafkaResponse")
T = TypeVar("T")

_logger: Final = logging.getLogger(__name__)

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
_BODIES: Final = "GET /v1/openapi.json describes every body."
_CLIENT_ID: Final = "rest"
_TOO_LARGE: Final = 413
_UNREAD: Final = (408, _TOO_LARGE, 415)
"""Errors of a body that is not read completely."""
IDENTITY: Final = "ottla.identity"
"""Scope key of the caller's Identity."""


class Identity(NamedTuple):
    """The caller: a principal, and the groups of its token."""

    principal: str = ANONYMOUS
    groups: tuple[str, ...] = ()


LOGIN_HOLDS: Final = "ottla.login_holds"
"""Scope key of a check that the login is still valid: a request may take hours."""


class LoginEnded(ApiError):
    code = ErrorCode.SASL_AUTHENTICATION_FAILED


class Endpoint(NamedTuple):
    method: str
    path: str
    handle: Callable[..., Awaitable[msgspec.Struct | Response]]
    summary: str
    query: type[msgspec.Struct] | None = None
    body: type[msgspec.Struct] | None = None
    answer: type[msgspec.Struct] | None = None
    status: int = 200
    streams: str = ""
    """The media type of a streamed response, instead of JSON or on request."""
    takes: str = ""
    """The media type of a streamed body, in addition to JSON."""
    refusal: type[msgspec.Struct] | None = None
    """The struct of an error response, if it is not problem+json."""


class HttpState:
    """State shared by all calls."""

    def __init__(self, broker: Broker, config: HttpConfig, stats: HttpStats) -> None:
        self.broker = broker
        self.config = config
        self.stats = stats
        self.endpoints: tuple[Endpoint, ...] = ()
        self.login: Login | None = None
        """Authentication, if enabled."""
        self.queues_ask = False
        """Whether queues have separate users."""
        self.registry: Registry | None = None
        """The schema registry, once it is used."""
        self.bodies = Bodies(config.max_stalled_ms / 1000, config.max_held_bytes)
        self.sampler: Sampler
        """Samples the broker's counters while the port is served."""
        self.tails: set[asyncio.Task[Any]] = set()
        """Running tails, which are cancelled at shutdown."""


class Call:
    """One request for a handler."""

    def __init__(self, request: Request, http_state: HttpState, endpoint: Endpoint) -> None:
        self.request = request
        self.http_state = http_state
        self.broker = http_state.broker
        self._endpoint = endpoint
        client = request.client
        self.peer = f"{client.host}:{client.port}" if client else "?:0"
        identity: Identity = request.scope.get(IDENTITY, Identity())
        self.principal = identity.principal
        peer = (client.host, client.port) if client else ("?", 0)
        self._client = LocalClient(http_state.broker, _CLIENT_ID, peer, *identity)
        self.inflating = http_state.broker.inflating
        self.may = self._client.may
        self.check = self._client.check

    async def ask(self, request: RequestFor[ResponseT], version: int | None = None) -> ResponseT:
        """The response of the broker's handler, or of the node responsible for the request."""
        self._check_login()
        answer = await self._client.ask(request, version)
        if request.API.key == FETCH.key:  # a fetch may have waited
            self._check_login()
        return answer

    def _check_login(self) -> None:
        holds = self.request.scope.get(LOGIN_HOLDS)
        if holds is not None and not holds():
            raise LoginEnded("the session has expired, or the user was deleted; log in again")

    async def ask_here(self, request: RequestFor[ResponseT], version: int | None = None) -> ResponseT:
        """The response of this node only."""
        self._client.forwards = False
        try:
            return await self._client.ask(request, version)
        finally:
            self._client.forwards = True

    def note(self, action: str, *names: str) -> None:
        """Write a change to the audit log that is not an audited Kafka request."""
        audit = self.broker.security.audit
        if audit is not None:
            audit.noted(self._client, action, names)

    def check_cluster(self) -> None:
        """Raises an error unless the user may describe the cluster."""
        self.check(AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)

    def path(self, name: str) -> str:
        # Routes match the raw path, so that a slash may be part of a name.
        text: str = self.request.path_params[name]
        try:
            return unquote(text, errors="strict")
        except UnicodeDecodeError:
            raise BadRequest(f"{name} is not UTF-8") from None

    def query(self, kind: type[T]) -> T:
        """The query parameters, validated against the endpoint."""
        found: dict[str, str | list[str]] = {}
        lists = _list_fields(kind)  # type: ignore[arg-type]  # a class is hashable
        for name, value in self.request.query_params.multi_items():
            if name in lists:
                found.setdefault(name, []).append(value)  # type: ignore[union-attr]
            elif name in found:
                raise BadRequest(f"query parameter {name} is given twice")
            else:
                found[name] = value
        try:
            return msgspec.convert(found, kind, strict=False)
        except msgspec.ValidationError as wrong:
            detail = f"query: {explained(wrong, kind)}"
            raise BadRequest(detail, hint="GET /v1/openapi.json describes every parameter.") from None

    # The body

    async def body(self, kind: type[T], most_bytes: int | None = None) -> T:
        limit = self.http_state.config.max_body_bytes if most_bytes is None else most_bytes
        with self.receive(limit) as body:
            try:
                content = await body.read_all(limit)
            except BodyRefused as refused:
                raise problem_of_body(refused, limit) from None
        await others()
        return decode_json(content, kind)

    def receive(self, limit: int | None = None) -> Body:
        """The body as it arrives. Without a `limit` it is processed in chunks and not buffered."""
        encoding = self.request.headers.get("content-encoding", "identity")
        if encoding != "identity":
            hint = "Send the body uncompressed. Responses are compressed for clients that accept gzip."
            raise Problem(415, f"content encoding {encoding} is not supported", hint=hint)
        announced = self.request.headers.get("content-length", "0")
        if limit is not None and int(announced) > limit:
            raise too_large(limit)
        return Body(self.http_state.bodies, self.request.stream(), is_collected=limit is not None)

    # The answer

    def answered(self, answer: msgspec.Struct | Response) -> Response:
        if isinstance(answer, Response):
            return answer
        content = msgspec.json.encode(answer)
        if self._endpoint.method != "GET":
            return Response(content, self._endpoint.status, media_type=JSON)
        return self.tagged(content)

    def tagged(self, content: bytes) -> Response:
        """Add an ETag; without content if the client has it cached."""
        tag = f'W/"{len(content):x}-{zlib.crc32(content):08x}"'
        headers = {"etag": tag, "cache-control": "no-cache"}
        if tag in self.request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(content, self._endpoint.status, headers, JSON)


def too_large(limit: int) -> Problem:
    hint = "Send less at a time, stream messages as application/x-ndjson, or raise http.max_body_bytes."
    return Problem(413, f"the body is larger than {limit} bytes", hint=hint)


class UnreadBody(Problem):
    """Raised when a body is abandoned before its end."""


def problem_of_body(refused: BodyRefused, limit: int) -> Problem:
    if refused.status == _TOO_LARGE:
        return too_large(limit)
    return UnreadBody(refused.status, str(refused), hint=refused.hint)


def decode_json(content: bytes, kind: type[T], what: str = "the body") -> T:
    if not content:
        raise BadRequest(f"{what} is empty", hint=_BODIES)
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as wrong:
        raise BadRequest(f"{what}: {explained(wrong, kind)}", hint=_BODIES) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as malformed:
        raise BadRequest(f"{what} is not JSON: {malformed}") from None
    except RecursionError:
        raise BadRequest(f"{what} is nested too deeply") from None


@cache
def _list_fields(kind: type[Any]) -> frozenset[str]:
    return frozenset(field.name for field in msgspec.structs.fields(kind) if get_origin(field.type) is tuple)


async def others() -> None:
    """Yield: an HTTP request takes as long as many Kafka requests."""
    await asyncio.sleep(0)


async def call(http_state: HttpState, endpoint: Endpoint, request: Request) -> Response:
    this = Call(request, http_state, endpoint)
    try:
        await others()
        answer = await endpoint.handle(this)
        await others()
        return this.answered(answer)
    except Problem as problem:
        # The remaining size of an unread body is unknown.
        closes = problem.status in _UNREAD or isinstance(problem, UnreadBody)
        return problem_response(problem, {"connection": "close"} if closes else None)
    except ApiError as refused:
        return problem_response(problem_of(refused))
    except ClientDisconnect:
        # The client is gone.
        return Response(status_code=499)
    except Exception as bug:  # noqa: BLE001 - a bug of ours must cost no more than this request
        _logger.error("internal error while answering %s %s", request.method, request.url.path, exc_info=bug)
        return problem_response(Problem(500, "internal error; see the broker's log"))
