"""SaslHandshake (17) and SaslAuthenticate (36). Reauthentication on a connection is KIP-368."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ottla.core.errors import ErrorCode
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context
    from ottla.broker.security.gate import Login
    from ottla.net.connection import Connection

_NO_LOGIN: Final = "This listener does not use SASL."
_REFUSED: Final = "Authentication failed: invalid credentials or mechanism"


def sasl_handshake(broker: Broker, request: SaslHandshakeRequest, context: Context) -> SaslHandshakeResponse:
    login, logins = _login(context), broker.security.logins
    is_bare = context.version == 0
    if login is None or logins is None or (is_bare and login.is_known):
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=())
    if request.mechanism not in login.mechanisms:
        return SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=login.mechanisms)
    login.begin(request.mechanism, logins.exchange(request.mechanism), is_raw=is_bare)
    return SaslHandshakeResponse(error_code=ErrorCode.NONE, mechanisms=login.mechanisms)


async def sasl_authenticate(
    broker: Broker, request: SaslAuthenticateRequest, context: Context
) -> SaslAuthenticateResponse:
    from ottla.broker.security.gate import step_of
    from ottla.core.security import LoginFailed, PasswordExpired, TooManyConnections

    login, logins = _login(context), broker.security.logins
    if login is None or logins is None or login.exchange is None:
        return _refusal(
            ErrorCode.ILLEGAL_SASL_STATE, _NO_LOGIN if login is None else "SaslHandshake is required first."
        )
    connection = cast("Connection", context.connection)
    try:
        step = await step_of(logins, connection, login, request.auth_bytes)
    except LoginFailed as refused:
        connection.finish()
        message = str(refused) if isinstance(refused, TooManyConnections | PasswordExpired) else _REFUSED
        return _refusal(ErrorCode.SASL_AUTHENTICATION_FAILED, message)
    return SaslAuthenticateResponse(
        error_code=ErrorCode.NONE, error_message=None, auth_bytes=step.message, session_lifetime_ms=login.lifetime_ms
    )


def _login(context: Context) -> Login | None:
    return cast("Login | None", context.connection.login)


def _refusal(code: ErrorCode, message: str) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=code, error_message=message, auth_bytes=b"")
