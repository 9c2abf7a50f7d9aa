"""Queues over HTTP: the endpoints of v-queue's server, and additional ones.

GET    /api/v1/queues                                        list names
POST   /api/v1/queues                                        create {"name": …}
GET    /api/v1/queues/{queue}                                state
DELETE /api/v1/queues/{queue}                                delete
POST   /api/v1/queues/{queue}/messages                       push
GET    /api/v1/queues/{queue}/consumers                      list consumers
GET    /api/v1/queues/{queue}/consumers/{consumer}/messages  the next messages; repeated until committed
POST   /api/v1/queues/{queue}/consumers/{consumer}/commit    commit what was returned last
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import logging
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from ottla.http.framework.bodies import Body, BodyRefused
from ottla.http.framework.guard import ROUTE
from ottla.http.queues.config import MAX_MESSAGES
from ottla.http.queues.messages import Malformed, messages_in, shown
from ottla.http.queues.store import AlreadyExists
from ottla.queue import AlreadyOpen, NotFound, Other, QueueError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from starlette.types import ASGIApp, Receive, Scope, Send

    from ottla.http.framework.bodies import Bodies
    from ottla.http.queues.config import QueuesConfig
    from ottla.http.queues.store import QueueStore
    from ottla.queue.positions import Start

_logger: Final = logging.getLogger(__name__)

PREFIX: Final = "/api/v1/queues"
_DEFAULT_TIMEOUT_MS: Final = 1000
MAX_TIMEOUT_MS: Final = 60_000
_POLL_S: Final = 0.05
_MAX_ANSWER_BYTES: Final = 16 << 20
_MAX_BODY_BYTES: Final = 16 << 20


class Refused(Exception):
    def __init__(self, status: int, error: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(error)
        self.status = status
        self.headers = headers


class NewQueue(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class Queues:
    """All endpoints of one folder of queues, as an ASGI application inside a `Guard`."""

    def __init__(
        self,
        store: QueueStore,
        config: QueuesConfig,
        bodies: Bodies,
        note: Callable[[Request, str, str], None] = lambda *_: None,
    ) -> None:
        """`note` is called for created and deleted queues, with the request, the action and the name."""
        self._note = note
        self._store = store
        self._config = config
        self._bodies = bodies
        self._turns: dict[tuple[str, str], _Turn] = {}
        self._pushed: dict[str, asyncio.Event] = {}
        self._router = Router(list(self._routes()), redirect_slashes=False, default=not_served)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._router(scope, receive, send)

    def _routes(self) -> Iterator[Route]:
        queue = PREFIX + "/{queue}"
        consumer = queue + "/consumers/{consumer}"
        table: dict[str, dict[str, Callable[[Request], Awaitable[Response]]]] = {
            PREFIX: {"GET": self.list_queues, "POST": self.create_queue},
            queue: {"GET": self.show_queue, "DELETE": self.delete_queue},
            queue + "/messages": {"POST": self.push_messages},
            queue + "/consumers": {"GET": self.list_consumers},
            consumer + "/messages": {"GET": self.next_messages},
            consumer + "/commit": {"POST": self.commit},
        }
        for path, by_method in table.items():
            yield Route(path, _Resource(path, self._checked, by_method))

    async def _checked(self, request: Request, handle: Callable[[Request], Awaitable[Response]]) -> Response:
        """Converts exceptions of handlers into responses."""
        try:
            self._check_password(request)
            return await handle(request)
        except Refused as refused:
            return _error(refused.status, str(refused), refused.headers)
        except (Malformed, Other) as wrong:
            return _error(400, str(wrong))
        except NotFound as missing:
            return _error(404, str(missing))
        except (AlreadyOpen, AlreadyExists) as taken:
            return _error(409, str(taken))
        except QueueError as failed:
            _logger.error("%s %s: %s", request.method, request.url.path, failed)
            return _error(500, str(failed))

    def _check_password(self, request: Request) -> None:
        if not self._config.needs_password:
            return
        scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
        name, _, password = _decoded(encoded).partition(b":") if scheme.lower() == "basic" else (b"", b"", b"")
        known = {name.encode(): password.encode() for name, password in self._config.users.items()}
        # Compared for unknown names as well, for constant time.
        is_right = hmac.compare_digest(known.get(name, b"\0"), password)
        if name not in known or not is_right:
            raise Refused(401, "Authentication required", {"www-authenticate": 'Basic realm="queues"'})

    # Queues

    async def list_queues(self, _: Request) -> Response:
        return _json({"queues": await asyncio.to_thread(self._store.names)})

    async def create_queue(self, request: Request) -> Response:
        try:
            wanted = msgspec.json.decode(await self._body(request), type=NewQueue)
        except (msgspec.MsgspecError, UnicodeDecodeError) as wrong:
            raise Refused(400, f'the body has to be {{"name": …}}: {wrong}') from None
        await asyncio.to_thread(self._store.create, wanted.name)
        self._note(request, "CreateQueue", wanted.name)
        return await self._state(wanted.name, 201)

    async def show_queue(self, request: Request) -> Response:
        return await self._state(_name(request, "queue"), 200)

    async def _state(self, name: str, status: int) -> Response:
        found = await asyncio.to_thread(self._store.state, name)
        state = {
            "name": found.name,
            "id": found.part,
            "count_pushed": found.count_pushed,
            "is_ready": found.is_ready,
        }
        return _json(state, status)

    async def delete_queue(self, request: Request) -> Response:
        name = _name(request, "queue")
        await asyncio.to_thread(self._store.delete, name)
        self._note(request, "DeleteQueue", name)
        return Response(status_code=200)

    async def push_messages(self, request: Request) -> Response:
        name = _name(request, "queue")
        messages = messages_in(await self._body(request), request.headers.get("content-type", ""))
        largest = max((len(one) if isinstance(one, bytes) else len(one.encode()) for one in messages), default=0)
        if largest > self._config.max_message_size:
            raise Refused(413, f"a message is limited to {self._config.max_message_size} bytes, got {largest}")
        pushed = await asyncio.to_thread(self._store.push, name, messages)
        waiting = self._pushed.pop(name, None)
        if waiting is not None:
            waiting.set()
        return _json({"id": pushed.part, "count": pushed.messages})

    async def _body(self, request: Request) -> bytes:
        # Encoded as base64 in quotes, a message takes up to a third more.
        limit = max(_MAX_BODY_BYTES, 2 * self._config.max_message_size)
        with Body(self._bodies, request.stream(), is_collected=True) as body:
            try:
                return await body.read_all(limit)
            except BodyRefused as refused:
                raise Refused(refused.status, str(refused), {"connection": "close"}) from None

    # Consumers

    async def list_consumers(self, request: Request) -> Response:
        return _json({"consumers": await asyncio.to_thread(self._store.consumers, _name(request, "queue"))})

    async def next_messages(self, request: Request) -> Response:
        name, consumer = _name(request, "queue"), _name(request, "consumer")
        timeout_ms = _number(request, "timeout_ms", _DEFAULT_TIMEOUT_MS, range(MAX_TIMEOUT_MS + 1))
        count = _number(request, "max_messages", self._config.default_batch_size, range(1, MAX_MESSAGES + 1))
        start = _start(request)
        deadline_s = asyncio.get_running_loop().time() + timeout_ms / 1000
        async with self._turn(name, consumer):
            opened = await asyncio.to_thread(self._store.open_consumer, name, consumer, start)
            try:
                while True:
                    waiting = self._pushed.setdefault(name, asyncio.Event())
                    messages = await asyncio.to_thread(self._store.give, name, opened, count, _MAX_ANSWER_BYTES)
                    if messages or not await self._comes(request, waiting, deadline_s):
                        return _json({"messages": [shown(message) for message in messages]})
            finally:
                await asyncio.to_thread(opened.close)

    async def _comes(self, request: Request, waiting: asyncio.Event, deadline_s: float) -> bool:
        """Wait until something is pushed in this process, or for a while, since another process may push."""
        left_s = deadline_s - asyncio.get_running_loop().time()
        if left_s <= 0 or await request.is_disconnected():
            return False
        with suppress(TimeoutError):
            await asyncio.wait_for(waiting.wait(), min(left_s, _POLL_S))
        return True

    async def commit(self, request: Request) -> Response:
        name, consumer = _name(request, "queue"), _name(request, "consumer")
        part, offset = (_number(request, field, -1, range(1 << 63)) for field in ("part", "offset"))
        if (part < 0) != (offset < 0):
            raise Refused(400, "part and offset must be given together")
        async with self._turn(name, consumer):
            if part < 0:
                await asyncio.to_thread(self._store.commit, name, consumer)
            else:
                await asyncio.to_thread(self._store.commit_behind, name, consumer, part, offset)
        return Response(status_code=200)

    @asynccontextmanager
    async def _turn(self, name: str, consumer: str) -> AsyncIterator[None]:
        """Allows one request at a time per consumer: the file lock is for other processes."""
        turn = self._turns.setdefault((name, consumer), _Turn())
        turn.wanted += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.wanted -= 1
            if not turn.wanted:
                del self._turns[name, consumer]


class _Turn:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.wanted = 0
        """The number of requests that wait for it."""


class _Resource:
    """All methods of one path."""

    def __init__(
        self,
        path: str,
        checked: Callable[[Request, Callable[[Request], Awaitable[Response]]], Awaitable[Response]],
        by_method: dict[str, Callable[[Request], Awaitable[Response]]],
    ) -> None:
        self._path = path
        self._checked = checked
        self._by_method = by_method | ({"HEAD": by_method["GET"]} if "GET" in by_method else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        handle = self._by_method.get(scope["method"])
        if handle is None:
            allowed = {"allow": ", ".join(self._by_method)}
            response = _error(405, f"{scope['method']} is not allowed for {scope['path']}", allowed)
        else:
            scope[ROUTE] = self._path
            response = await self._checked(Request(scope, receive), handle)
        await response(scope, receive, send)


async def not_served(scope: Scope, receive: Receive, send: Send) -> None:
    await _error(404, f"no endpoint {scope['path']}")(scope, receive, send)


def mounted(queues: ASGIApp, others: ASGIApp) -> ASGIApp:
    """Combine both applications: paths below `/api/v1/queues`, and all others."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        is_ours = path == PREFIX or path.startswith(PREFIX + "/")
        await (queues if is_ours else others)(scope, receive, send)

    return app


def _json(content: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, media_type="application/json")


def _error(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode({"error": text}), status, headers, "application/json")


def _name(request: Request, which: str) -> str:
    try:
        return unquote(request.path_params[which], errors="strict")
    except UnicodeDecodeError:
        raise Refused(400, f"the {which} name is not UTF-8") from None


def _number(request: Request, name: str, default: int, allowed: range) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 19 or int(text) not in allowed:
        raise Refused(400, f"{name} must be {allowed[0]} to {allowed[-1]}, got {text!r}")
    return int(text)


def _start(request: Request) -> Start:
    match request.query_params.get("start", "earliest"):
        case "latest_part":
            return "latest_part"
        case "earliest":
            return "earliest"
        case other:
            raise Refused(400, f"start must be earliest or latest_part, got {other!r}")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""
