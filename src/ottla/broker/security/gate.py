"""Authentication on a SASL port: before the login only a few APIs are answered (KIP-368)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ProtocolError
from ottla.core.security import LoginFailed
from ottla.net.sasl.exchange import Challenge
from ottla.wire.apis import (
    API_VERSIONS,
    FETCH,
    JOIN_GROUP,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    SHARE_FETCH,
    SYNC_GROUP,
)
from ottla.wire.header import read_request_header

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Sequence

    from ottla.broker.requests.dispatch import Dispatcher
    from ottla.broker.security.logins import Logins
    from ottla.net.connection import Connection
    from ottla.net.sasl.exchange import Exchange, Step
    from ottla.wire.declare import Sendable

_WITHOUT_LOGIN: Final = frozenset({API_VERSIONS.key, SASL_HANDSHAKE.key, SASL_AUTHENTICATE.key})
_WAITING: Final = frozenset({FETCH.key, SHARE_FETCH.key, JOIN_GROUP.key, SYNC_GROUP.key})
"""APIs whose responses may be delayed."""
_BY_PASSWORD: Final = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"})
_LAST_ANSWERS_S: Final = 1.0


class Login:
    """The state of a connection's authentication."""

    __slots__ = (
        "_ends_s",
        "_expires_s",
        "exchange",
        "is_in_turn",
        "is_known",
        "is_raw",
        "lifetime_ms",
        "mechanism",
        "mechanisms",
        "token_id",
    )

    def __init__(self, mechanisms: Sequence[str]) -> None:
        self.mechanisms = tuple(mechanisms)
        self.mechanism = ""
        self.exchange: Exchange | None = None
        self.is_raw = False
        """SaslHandshake version 0: raw SASL messages follow, not requests."""
        self.is_in_turn = False
        """Whether the delay for addresses with many failures has passed."""
        self.is_known = False
        self.token_id: str | None = None
        """The id of the delegation token of the login."""
        self.lifetime_ms = 0
        """How long the last login lasts; 0 for as long as the connection, or if it is incomplete."""
        self._ends_s: float | None = None
        """When the client has to log in again."""
        self._expires_s: float | None = None
        """When the password or token of the login expires."""

    @property
    def is_open(self) -> bool:
        return self.is_known and (self._ends_s is None or asyncio.get_running_loop().time() < self._ends_s)

    @property
    def is_valid(self) -> bool:
        """Whether requests that were received in time may still be answered."""
        return self.is_known and (self._expires_s is None or asyncio.get_running_loop().time() < self._expires_s)

    def begin(self, mechanism: str, exchange: Exchange, *, is_raw: bool) -> None:
        self.mechanism, self.exchange, self.is_raw = mechanism, exchange, is_raw
        self.lifetime_ms = 0
        self.is_in_turn = False

    def succeed(self, lifetime_ms: int, valid_ms: int | None) -> None:
        """`valid_ms`: how long the password or token is valid."""
        self.exchange, self.is_raw, self.is_known = None, False, True
        self.lifetime_ms = lifetime_ms
        now_s = asyncio.get_running_loop().time()
        self._ends_s = now_s + lifetime_ms / 1000 if lifetime_ms else None
        self._expires_s = None if valid_ms is None else now_s + valid_ms / 1000

    def shorten(self, left_s: float) -> None:
        """Shorten the login: the password expires earlier than before."""
        expires_s = asyncio.get_running_loop().time() + left_s
        self._ends_s = expires_s if self._ends_s is None else min(self._ends_s, expires_s)
        self._expires_s = expires_s if self._expires_s is None else min(self._expires_s, expires_s)

    def fail(self) -> None:
        self.exchange, self.is_raw, self.is_known = None, False, False


class Gate:
    def __init__(self, dispatcher: Dispatcher, logins: Logins, mechanisms: Sequence[str]) -> None:
        self._dispatcher = dispatcher
        self._logins = logins
        self._mechanisms = mechanisms

    def answer(
        self, connection: Connection, frame: memoryview
    ) -> list[Sendable] | Awaitable[list[Sendable] | None] | None:
        login = connection.login
        if not isinstance(login, Login):
            login = connection.login = Login(self._mechanisms)
        if not login.is_open:
            if login.is_raw:
                return self._answer_raw(connection, login, bytes(frame))
            api = read_request_header(frame).api
            if api.key not in _WITHOUT_LOGIN:
                why = "after its login has expired" if login.is_known else "before logging in"
                raise ProtocolError(f"{api} {why}")
        answer = self._dispatcher.answer(connection, frame)
        if answer is None or isinstance(answer, list) or int.from_bytes(frame[:2]) not in _WAITING:
            return answer
        return _if_still_known(login, answer)

    async def _answer_raw(self, connection: Connection, login: Login, message: bytes) -> list[Sendable] | None:
        try:
            step = await step_of(self._logins, connection, login, message)
        except LoginFailed:
            connection.finish()
            return None
        return [len(step.message).to_bytes(4), step.message]


async def _if_still_known(login: Login, answer: Awaitable[list[Sendable] | None]) -> list[Sendable] | None:
    buffers = await answer
    if not login.is_valid:
        raise ProtocolError("the user was deleted, or its credential expired, while the request waited")
    return buffers


def end_logins(connections: Iterable[Connection], user: str) -> None:
    """End the logins of a deleted user: reject further requests of its connections, and close them."""
    loop = asyncio.get_running_loop()
    for connection in connections:
        login = connection.login
        if connection.principal == f"User:{user}" and isinstance(login, Login) and login.mechanism in _BY_PASSWORD:
            login.fail()
            # Not at once: the user may have deleted itself, and must get the response.
            loop.call_later(_LAST_ANSWERS_S, connection.abort)


def shorten_logins(connections: Iterable[Connection], user: str, mechanism: str, left_s: float) -> None:
    """Shorten logins of this mechanism: the password expires in `left_s` seconds. PLAIN uses the verifiers of both
    mechanisms.
    """
    for connection in connections:
        login = connection.login
        if (
            connection.principal == f"User:{user}"
            and isinstance(login, Login)
            and login.token_id is None
            and login.mechanism in (mechanism, "PLAIN")
        ):
            login.shorten(left_s)


def end_token_logins(connections: Iterable[Connection], token_id: str) -> None:
    """End the logins with a deleted delegation token."""
    for connection in connections:
        login = connection.login
        if isinstance(login, Login) and login.token_id == token_id:
            login.fail()
            asyncio.get_running_loop().call_later(_LAST_ANSWERS_S, connection.abort)


async def step_of(logins: Logins, connection: Connection, login: Login, message: bytes) -> Step:
    """Process a message of the SASL exchange; raises LoginFailed, after a delay, on failure."""
    exchange = login.exchange
    if exchange is None:
        raise LoginFailed("no SASL exchange in progress")
    host, port = connection.peer
    peer = f"{host}:{port}"
    try:
        if not login.is_in_turn:
            await logins.wait_for_turn(peer)
            login.is_in_turn = True
        step = await logins.take(exchange, message)
        if isinstance(step, Challenge):
            return step
        if step.token_id is None and login.mechanism in _BY_PASSWORD:
            logins.check_password_login(step.user, step.expires_s)
        principal = f"User:{step.user}"
        if login.is_known and principal != connection.principal:
            raise LoginFailed(f"{connection.principal} cannot become {principal}")  # noqa: TRY301 - fails as others do
        if not login.is_known:
            logins.check_room(principal)
    except LoginFailed as refused:
        login.fail()
        await logins.failed(login.mechanism, peer, refused)
        raise
    logins.succeeded(login.mechanism, peer)
    if not login.is_known:
        logins.noted(login.mechanism, principal, peer)
    connection.principal, connection.groups = principal, step.groups
    login.token_id = step.token_id
    connection.admit()
    valid_ms = None if step.expires_s is None else max(1, round(step.expires_s * 1000) - logins.now_ms())
    login.succeed(_lifetime_ms(logins.config.session_max_ms, valid_ms), valid_ms)
    return step


def _lifetime_ms(session_max_ms: int, valid_ms: int | None) -> int:
    """How long a login lasts; 0 for as long as the connection."""
    if valid_ms is None:
        return session_max_ms
    return min(valid_ms, session_max_ms) if session_max_ms else valid_ms
