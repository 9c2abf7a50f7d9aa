"""SASL authentication, and re-authentication before the session expires (KIP-368)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.client.errors import AuthenticationFailed, BrokerUnavailable, ClientClosed, ClientError, raise_for
from ottla.client.sasl import exchange_for
from ottla.core.errors import ErrorCode
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

if TYPE_CHECKING:
    from ottla.client.connection import Connection
    from ottla.client.security import Security

_log: Final = logging.getLogger(__name__)

_HANDSHAKE_VERSION: Final = 1
"""The handshake version followed by SaslAuthenticate requests; version 0 uses bare bytes."""
_RENEW_AT: Final = 0.85
"""Re-authenticate after this fraction of the session lifetime; Kafka's clients do after 85 to 95 %."""


async def log_in(connection: Connection, security: Security) -> None:
    """Authenticate, and re-authenticate as long as the connection is open and the broker requires it."""
    lifetime_ms = await _exchange(connection, security)
    if lifetime_ms > 0:
        loop = asyncio.get_running_loop()
        timer = loop.call_later(lifetime_ms / 1000 * _RENEW_AT, _renew, connection, security)
        connection.closed.add_done_callback(lambda _: timer.cancel())


async def _exchange(connection: Connection, security: Security) -> int:
    """The session lifetime in ms; 0 for the lifetime of the connection."""
    shaken = await connection.ask(
        SaslHandshakeRequest(mechanism=security.mechanism or ""), version=_HANDSHAKE_VERSION, is_login=True
    )
    if shaken.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(shaken.mechanisms) or "no mechanism"
        raise AuthenticationFailed(f"{connection.address} does not offer {security.mechanism}; it offers {offered}")
    raise_for(shaken.error_code, f"{connection.address} rejected the SASL handshake")
    # In a thread: a token may come from a remote service, and SCRAM is slow by design.
    exchange = await asyncio.to_thread(exchange_for, security)
    message: bytes | None = exchange.begin()
    answered = None
    while message is not None:
        answered = await connection.ask(SaslAuthenticateRequest(auth_bytes=message), is_login=True)
        _check(connection, answered)
        message = await asyncio.to_thread(exchange.answer, answered.auth_bytes)
    return 0 if answered is None else answered.session_lifetime_ms


def _check(connection: Connection, answered: SaslAuthenticateResponse) -> None:
    if answered.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED:
        says = answered.error_message or "check the username and password"
        raise AuthenticationFailed(f"{connection.address} rejected the login: {says}")
    raise_for(answered.error_code, f"{connection.address} rejected the login", answered.error_message)


def _renew(connection: Connection, security: Security) -> None:
    task = asyncio.create_task(_log_in_again(connection, security))
    connection.closed.add_done_callback(lambda _: task.cancel())


async def _log_in_again(connection: Connection, security: Security) -> None:
    # Between the handshake and the end of the exchange the broker treats every request as part of it.
    connection.hold_back()
    try:
        await log_in(connection, security)
    except (BrokerUnavailable, ClientClosed):
        return  # the connection is gone
    except ClientError as refused:
        _log.warning("re-authentication failed: %s", refused)
        connection.close(refused)
    else:
        connection.let_go()
