"""CreateDelegationToken (38), RenewDelegationToken (39), ExpireDelegationToken (40), DescribeDelegationToken (41)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.security.delegation_tokens import USER_TYPE, is_of
from ottla.core.errors import ApiError, ErrorCode
from ottla.core.security import ANONYMOUS, AclOperation, ResourceType
from ottla.wire.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from ottla.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context
    from ottla.broker.security.delegation_tokens import DelegationTokens
    from ottla.storage.catalog.entries import DelegationToken

_logger: Final = logging.getLogger(__name__)

_NO_TIME: Final = -1
"""The value in a broker's error responses; Kafka's controller sends 0."""


class _NotAllowed(ApiError):
    code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


class _Disabled(ApiError):
    code = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


async def create(
    broker: Broker, request: CreateDelegationTokenRequest, context: Context
) -> CreateDelegationTokenResponse:
    requester = context.connection.principal
    owner = requester
    if request.owner_principal_name:
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    if (refused := _create_refusal(broker, request, context, owner)) is not None:
        return _not_created(owner, requester, refused, _NO_TIME)
    try:
        tokens = _tokens(broker)
        renewers = [f"{each.principal_type}:{each.principal_name}" for each in request.renewers]
        token = tokens.created(owner, requester, renewers, request.max_lifetime_ms, broker.clock.now_ms())
        await broker.administration.change_catalog(lambda: broker.catalog.put_token(token))
    except ApiError as failed:
        return _not_created(owner, requester, failed.code, 0)
    _logger.info("created delegation token %s of %s for %s", token.id, owner, context)
    return CreateDelegationTokenResponse(
        error_code=ErrorCode.NONE,
        **_owner(token.owner),
        **_requester(token.requester),
        issue_timestamp_ms=token.issued_ms,
        expiry_timestamp_ms=token.expires_ms,
        max_timestamp_ms=token.max_ms,
        token_id=token.id,
        hmac=tokens.hmac(token.id),
    )


def _create_refusal(
    broker: Broker, request: CreateDelegationTokenRequest, context: Context, owner: str
) -> ErrorCode | None:
    if not _may_ask(context):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    authorizer, requester = broker.security.authorizer, context.connection.principal
    if owner != requester and not (
        authorizer is None or authorizer.check(context, AclOperation.CREATE_TOKENS, ResourceType.USER, owner)
    ):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    if any(renewer.principal_type != USER_TYPE for renewer in request.renewers):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return None


async def renew(broker: Broker, request: RenewDelegationTokenRequest, context: Context) -> RenewDelegationTokenResponse:
    try:
        tokens = _checked(broker, context)
        principal, now_ms = context.connection.principal, broker.clock.now_ms()
        token = tokens.renewed(request.hmac, principal, request.renew_period_ms, now_ms)
        await broker.administration.change_catalog(lambda: broker.catalog.put_token(token))
    except ApiError as refused:
        return RenewDelegationTokenResponse(error_code=refused.code, expiry_timestamp_ms=_no_time(refused))
    return RenewDelegationTokenResponse(error_code=ErrorCode.NONE, expiry_timestamp_ms=token.expires_ms)


async def expire(
    broker: Broker, request: ExpireDelegationTokenRequest, context: Context
) -> ExpireDelegationTokenResponse:
    try:
        tokens = _checked(broker, context)
        principal, now_ms = context.connection.principal, broker.clock.now_ms()
        token = tokens.expired(request.hmac, principal, request.expiry_time_period_ms, now_ms)
        token_id = tokens.id_of(request.hmac)

        def change() -> None:
            if token is None:
                broker.catalog.delete_tokens([token_id])
            else:
                broker.catalog.put_token(token)

        await broker.administration.change_catalog(change)
    except ApiError as refused:
        return ExpireDelegationTokenResponse(error_code=refused.code, expiry_timestamp_ms=_no_time(refused))
    expires_ms = now_ms if token is None else token.expires_ms
    return ExpireDelegationTokenResponse(error_code=ErrorCode.NONE, expiry_timestamp_ms=expires_ms)


def describe(
    broker: Broker, request: DescribeDelegationTokenRequest, context: Context
) -> DescribeDelegationTokenResponse:
    try:
        tokens = _checked(broker, context)
    except ApiError as refused:
        return DescribeDelegationTokenResponse(error_code=refused.code, tokens=())
    owners = None
    if request.owners is not None:
        owners = frozenset(f"{owner.principal_type}:{owner.principal_name}" for owner in request.owners)
    found = [
        _described(token, tokens.hmac(token.id))
        for token in broker.catalog.view.tokens.values()
        if (owners is None or any(is_of(token, owner) for owner in owners)) and _may_see(broker, context, token)
    ]
    return DescribeDelegationTokenResponse(error_code=ErrorCode.NONE, tokens=tuple(found))


def _may_see(broker: Broker, context: Context, token: DelegationToken) -> bool:
    authorizer = broker.security.authorizer
    if authorizer is None or is_of(token, context.connection.principal):
        return True
    return authorizer.is_allowed(
        context, AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.id
    ) or authorizer.is_allowed(context, AclOperation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)


def _checked(broker: Broker, context: Context) -> DelegationTokens:
    if not _may_ask(context):
        raise _NotAllowed("the client has not authenticated, or has with a delegation token")
    return _tokens(broker)


def _may_ask(context: Context) -> bool:
    """Whether tokens may be managed on this connection: not without authentication, and not when logged in with a
    token, since a token must not create its successor.
    """
    client = context.connection
    if getattr(client.login, "token_id", None) is not None or client.listener == "PLAINTEXT":
        return False
    return not (client.listener == "SSL" and client.principal == ANONYMOUS)


def _tokens(broker: Broker) -> DelegationTokens:
    tokens = broker.security.tokens
    if tokens is None:
        raise _Disabled("security.delegation_token_secret is not set")
    return tokens


def _no_time(refused: ApiError) -> int:
    return _NO_TIME if isinstance(refused, _NotAllowed) else 0


def _not_created(owner: str, requester: str, code: ErrorCode, time_ms: int) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        error_code=code,
        **_owner(owner),
        **_requester(requester),
        issue_timestamp_ms=time_ms,
        expiry_timestamp_ms=time_ms,
        max_timestamp_ms=time_ms,
        token_id="",
        hmac=b"",
    )


def _owner(principal: str) -> dict[str, Any]:
    kind, _, name = principal.partition(":")
    return {"principal_type": kind, "principal_name": name}


def _requester(principal: str) -> dict[str, Any]:
    return {f"token_requester_{key}": value for key, value in _owner(principal).items()}


def _described(token: DelegationToken, hmac: bytes) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        **_owner(token.owner),
        **_requester(token.requester),
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.id,
        hmac=hmac,
        renewers=tuple(DescribedDelegationTokenRenewer(**_owner(each)) for each in token.renewers),
    )
