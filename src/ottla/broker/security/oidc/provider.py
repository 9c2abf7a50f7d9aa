"""HTTP requests to the OpenID Connect provider. They block: call them in the threads of logins."""

from __future__ import annotations

import base64
import threading
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from ottla.broker.security.oidc.flow import (
    check_id_token,
    read_logout,
    read_metadata,
    redirect_url,
)
from ottla.core.security import LoginFailed
from ottla.core.trusted_http import is_trusted, opener
from ottla.net.sasl.tokens import TokenRules, Tokens, read_claims

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.broker.security.oidc.flow import Attempt, Ended, Metadata
    from ottla.net.sasl.signatures import Keys
    from ottla.net.security_config import SecurityConfig

_DISCOVERY: Final = "/.well-known/openid-configuration"
_TIMEOUT_S: Final = 10.0
_MOST_BYTES: Final = 1 << 20
_METADATA_S: Final = 3600.0
_KEYS_S: Final = 300.0
_LEAST_BETWEEN_S: Final = 10.0
"""A signature mismatch may mean rotated keys, but forged tokens must not cause frequent requests."""


class Granted(NamedTuple):
    """The provider's data of a logged-in user."""

    user: str
    groups: tuple[str, ...]
    subject: str
    session_id: str | None
    id_token: str
    refresh_token: str | None
    lasts_s: float
    """The time until the next renewal."""


class _TokenAnswer(msgspec.Struct):
    id_token: str = ""
    refresh_token: str | None = None
    expires_in: float = 300.0


class Provider:
    def __init__(self, config: SecurityConfig, now_s: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._now_s = now_s
        self._opener = opener()
        self._lock = threading.Lock()
        self._metadata: Metadata | None = None
        self._metadata_until_s = 0.0
        self._keys: Keys | None = None
        self._keys_read_s = 0.0
        self._rules = TokenRules(
            issuer=config.oidc_issuer,
            audience=config.oidc_client_id,
            principal_claim=config.oidc_principal_claim,
            groups_claim=config.oidc_groups_claim,
            clock_skew_s=config.oauth_clock_skew_ms / 1000,
        )
        self._tokens = Tokens(self._rules, self._current_keys, time.time)

    def metadata(self) -> Metadata:
        with self._lock:
            if self._metadata is None or self._now_s() >= self._metadata_until_s:
                issuer = self._config.oidc_issuer
                self._metadata = read_metadata(self._ask(issuer.rstrip("/") + _DISCOVERY), issuer)
                self._metadata_until_s = self._now_s() + _METADATA_S
            return self._metadata

    def redeem(self, code: str, attempt: Attempt) -> Granted:
        """Redeem the authorization code; raises LoginFailed if the provider rejects it."""
        answer = self._ask_for_tokens(
            {
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": redirect_url(self._config),
                "code_verifier": attempt.verifier,
            }
        )
        return self._granted(answer, attempt.nonce)

    def renew(self, before: Granted) -> Granted:
        """Renew the login; raises LoginFailed if the provider rejects it or is unreachable."""
        if before.refresh_token is None:
            raise LoginFailed("the provider gave no refresh token, and the login has expired")
        answer = self._ask_for_tokens({"grant_type": "refresh_token", "refresh_token": before.refresh_token})
        if not answer.refresh_token:
            answer.refresh_token = before.refresh_token
        if not answer.id_token:
            # A renewal may omit the ID token.
            return before._replace(refresh_token=answer.refresh_token, lasts_s=answer.expires_in)
        now = self._granted(answer, None)
        if now.subject != before.subject:
            raise LoginFailed("the provider renewed the login of another subject")
        return now._replace(session_id=now.session_id or before.session_id)

    def ended(self, logout_token: str) -> Ended:
        return read_logout(self._claims(logout_token))

    def _granted(self, answer: _TokenAnswer, nonce: str | None) -> Granted:
        claims = self._claims(answer.id_token)
        check_id_token(claims, nonce, self._config.oidc_client_id)
        who = read_claims(claims, self._rules)
        session_id = claims.get("sid")
        return Granted(
            who.user,
            who.groups,
            claims["sub"],
            session_id if isinstance(session_id, str) else None,
            answer.id_token,
            answer.refresh_token,
            answer.expires_in,
        )

    def _claims(self, token: str) -> Mapping[str, Any]:
        try:
            return self._tokens.claims(token)
        except LoginFailed:
            if not self._forget_keys():
                raise
            return self._tokens.claims(token)

    # Requests

    def _current_keys(self) -> Keys:
        from ottla.net.sasl.signatures import Keys

        jwks_uri = self.metadata().jwks_uri
        with self._lock:
            if self._keys is None or self._now_s() >= self._keys_read_s + _KEYS_S:
                document = self._ask(jwks_uri)
                try:
                    self._keys = Keys(document)
                except (ValueError, KeyError, TypeError) as wrong:
                    raise LoginFailed(f"invalid JWKS at {jwks_uri}: {wrong}") from None
                self._keys_read_s = self._now_s()
            return self._keys

    def _forget_keys(self) -> bool:
        """Reload the JWKS, unless it was just loaded."""
        with self._lock:
            if self._now_s() < self._keys_read_s + _LEAST_BETWEEN_S:
                return False
            self._keys = None
            return True

    def _ask_for_tokens(self, form: dict[str, str]) -> _TokenAnswer:
        config, headers = self._config, {}
        if config.oidc_client_secret:
            # Id and secret are form-encoded first (RFC 6749, 2.3.1).
            pair = f"{quote(config.oidc_client_id, safe='')}:{quote(config.oidc_client_secret, safe='')}"
            headers["authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        else:
            form = {**form, "client_id": config.oidc_client_id}
        answer = self._ask(self.metadata().token_endpoint, urlencode(form).encode(), headers)
        try:
            return msgspec.json.decode(answer, type=_TokenAnswer)
        except msgspec.MsgspecError as wrong:
            raise LoginFailed(f"invalid response of the token endpoint: {wrong}") from None

    def _ask(self, address: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> bytes:
        if not is_trusted(address):
            raise LoginFailed(f"{address} is not an https URL")
        request = urllib.request.Request(address, body, {"accept": "application/json", **(headers or {})})  # noqa: S310
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
                document: bytes = answer.read(_MOST_BYTES)
                return document
        except urllib.error.HTTPError as refused:
            refused.close()
            raise LoginFailed(f"{address} answered {refused.code} {refused.reason}") from None
        except (OSError, ValueError) as failed:
            raise LoginFailed(f"{address} does not respond: {failed}") from None
