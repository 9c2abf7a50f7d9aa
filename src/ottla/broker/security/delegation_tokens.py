"""The rules of delegation tokens (KIP-48), as in Kafka's controller, with the time as an argument."""

from __future__ import annotations

import base64
import hmac
import secrets
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ottla.core.errors import ApiError, ErrorCode
from ottla.net.sasl.exchange import FoundToken
from ottla.net.sasl.scram import MIN_ITERATIONS, SALT_BYTES, salted, verifier_of
from ottla.storage.catalog.entries import DelegationToken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ottla.net.sasl.scram import MadeVerifier
    from ottla.net.security_config import SecurityConfig

USER_TYPE: Final = "User"
_ID_BYTES: Final = 16
_MAX_MS: Final = (1 << 63) - 1
_MOST_REMEMBERED: Final = 1000


class TokenNotFound(ApiError):
    code = ErrorCode.DELEGATION_TOKEN_NOT_FOUND


class TokenExpired(ApiError):
    code = ErrorCode.DELEGATION_TOKEN_EXPIRED


class TokenOwnerMismatch(ApiError):
    code = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


class DelegationTokens:
    """The tokens of a broker; their secrets are derived from one key that all nodes share."""

    def __init__(self, config: SecurityConfig, held: Callable[[], Mapping[str, DelegationToken]]) -> None:
        self._key = config.delegation_token_secret.encode()
        self._max_lifetime_ms = config.delegation_token_max_lifetime_ms
        self._expiry_ms = config.delegation_token_expiry_ms
        self._held = held
        self._verifiers: dict[tuple[str, str], MadeVerifier] = {}
        self._by_hmac: tuple[object, dict[bytes, str]] = None, {}

    def hmac(self, token_id: str) -> bytes:
        """The secret of a token; its password is the secret in base64."""
        return hmac.digest(self._key, token_id.encode(), "sha512")

    # Changes: the tokens to store

    def created(
        self, owner: str, requester: str, renewers: Iterable[str], lifetime_ms: int, now_ms: int
    ) -> DelegationToken:
        lifetime_ms = min(lifetime_ms, self._max_lifetime_ms) if lifetime_ms > 0 else self._max_lifetime_ms
        max_ms = min(now_ms + lifetime_ms, _MAX_MS)
        expires_ms = min(max_ms, now_ms + self._expiry_ms)
        token_id = _new_id()
        return DelegationToken(token_id, owner, requester, tuple(renewers), now_ms, expires_ms, max_ms)

    def renewed(self, secret: bytes, principal: str, period_ms: int, now_ms: int) -> DelegationToken:
        token = self._with_hmac(secret)
        if is_expired(token, now_ms):
            raise TokenExpired("the delegation token has expired")
        _check_may_renew(token, principal)
        period_ms = min(period_ms, self._expiry_ms) if period_ms > 0 else self._expiry_ms
        return replace(token, expires_ms=min(token.max_ms, now_ms + period_ms))

    def expired(self, secret: bytes, principal: str, period_ms: int, now_ms: int) -> DelegationToken | None:
        """The token with its new expiry; None to delete it."""
        token = self._with_hmac(secret)
        _check_may_renew(token, principal)
        if period_ms < 0:
            return None
        if is_expired(token, now_ms):
            raise TokenExpired("the delegation token has expired")
        return replace(token, expires_ms=min(token.max_ms, now_ms + period_ms, _MAX_MS))

    def id_of(self, secret: bytes) -> str:
        return self._with_hmac(secret).id

    def outdated(self, now_ms: int) -> list[str]:
        return [token.id for token in self._held().values() if is_expired(token, now_ms)]

    # Logins

    def find(self, token_id: str, mechanism: str, now_ms: int) -> FoundToken | None:
        """The verifier of a login with this token; None if it is unknown or expired."""
        token = self._held().get(token_id)
        if token is None or is_expired(token, now_ms):
            return None
        kind, _, name = token.owner.partition(":")
        if kind != USER_TYPE:
            return None
        return FoundToken(self._verifier(token_id, mechanism), token_id, name, token.expires_ms / 1000)

    def _verifier(self, token_id: str, mechanism: str) -> MadeVerifier:
        key = token_id, mechanism
        made = self._verifiers.get(key)
        if made is None:
            secret = self.hmac(token_id)
            salt = hmac.digest(secret, b"salt " + mechanism.encode(), "sha512")[:SALT_BYTES]
            password = base64.b64encode(secret).decode()
            made = verifier_of(mechanism, salt, MIN_ITERATIONS, salted(mechanism, password, salt, MIN_ITERATIONS))
            if len(self._verifiers) >= _MOST_REMEMBERED:
                self._verifiers.clear()
            self._verifiers[key] = made
        return made

    def _with_hmac(self, secret: bytes) -> DelegationToken:
        held = self._held()
        if held is not self._by_hmac[0]:
            self._by_hmac = held, {self.hmac(token_id): token_id for token_id in held}
        token_id = self._by_hmac[1].get(bytes(secret))
        if token_id is None:
            raise TokenNotFound("unknown delegation token")
        return held[token_id]


def is_expired(token: DelegationToken, now_ms: int) -> bool:
    return token.max_ms < now_ms or token.expires_ms < now_ms


def is_of(token: DelegationToken, principal: str) -> bool:
    """Whether this principal is the token's owner, requester or one of its renewers, who may describe it."""
    return principal in (token.owner, token.requester, *token.renewers)


def _check_may_renew(token: DelegationToken, principal: str) -> None:
    # As in Kafka, the requester may not.
    if principal not in (token.owner, *token.renewers):
        raise TokenOwnerMismatch(f"{principal} is neither the owner nor a renewer of the delegation token")


def _new_id() -> str:
    """Like Kafka's: a random UUID in URL-safe base64 that does not start with a dash."""
    while True:
        text = base64.urlsafe_b64encode(secrets.token_bytes(_ID_BYTES)).decode().rstrip("=")
        if not text.startswith("-"):
            return text
