"""The authorization code flow with PKCE (OpenID Connect Core, RFC 7636), and logouts that the provider sends. Pure.

A login is an attempt: a random state that the browser must bring back, a nonce that the ID token must repeat, and a
verifier of which the provider sees only the hash until the code is redeemed.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode

import msgspec

from ottla.core.security import LoginFailed
from ottla.core.trusted_http import is_trusted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.net.security_config import SecurityConfig

ATTEMPT_S: Final = 600.0
CALLBACK: Final = "/v1/session/oidc/callback"
_LOGOUT_EVENT: Final = "http://schemas.openid.net/event/backchannel-logout"


class Attempt(NamedTuple):
    """A login in progress, and the values that its callback must match."""

    state: str
    nonce: str
    verifier: str
    ends_s: float


class Metadata(msgspec.Struct, frozen=True):
    """The used fields of a provider's discovery document."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str = ""


class Ended(NamedTuple):
    """The sessions that a logout token ends: one session id, or all of a subject."""

    subject: str | None
    session_id: str | None


def new_attempt(now_s: float) -> Attempt:
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    return Attempt(state, nonce, verifier, now_s + ATTEMPT_S)


def challenge(verifier: str) -> str:
    """The S256 code challenge of a verifier."""
    digest = hashlib.sha256(verifier.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def redirect_url(config: SecurityConfig) -> str:
    return config.oidc_public_url.rstrip("/") + CALLBACK


def authorization_url(metadata: Metadata, config: SecurityConfig, attempt: Attempt) -> str:
    return with_query(
        metadata.authorization_endpoint,
        {
            "response_type": "code",
            "client_id": config.oidc_client_id,
            "redirect_uri": redirect_url(config),
            "scope": config.oidc_scope,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": challenge(attempt.verifier),
            "code_challenge_method": "S256",
        },
    )


def logout_url(metadata: Metadata, config: SecurityConfig, id_token: str) -> str | None:
    """The provider's logout page; None if it has none."""
    if not metadata.end_session_endpoint:
        return None
    return with_query(
        metadata.end_session_endpoint,
        {
            "id_token_hint": id_token,
            "client_id": config.oidc_client_id,
            "post_logout_redirect_uri": config.oidc_public_url,
        },
    )


def with_query(address: str, parameters: Mapping[str, str]) -> str:
    return f"{address}{'&' if '?' in address else '?'}{urlencode(parameters)}"


def read_metadata(document: bytes, issuer: str) -> Metadata:
    """Raises LoginFailed if it is not the discovery document of this issuer, or contains a plain http URL."""
    try:
        found = msgspec.json.decode(document, type=Metadata)
    except msgspec.MsgspecError as wrong:
        raise LoginFailed(f"the discovery document of {issuer} is not valid: {wrong}") from None
    if found.issuer != issuer:
        raise LoginFailed(f"the discovery document of {issuer} has the issuer {found.issuer!r}")
    for address in (found.authorization_endpoint, found.token_endpoint, found.jwks_uri):
        if not is_trusted(address):
            raise LoginFailed(f"the discovery document of {issuer} contains {address!r}, which is not an https URL")
    return found


def check_id_token(claims: Mapping[str, Any], nonce: str | None, client_id: str) -> None:
    """Check an ID token beyond issuer, audience and time; a renewed one need not repeat the nonce."""
    if nonce is not None and not secrets.compare_digest(str(claims.get("nonce", "")), nonce):
        raise LoginFailed("the nonce of the ID token does not match the login")
    if claims.get("azp", client_id) != client_id:
        raise LoginFailed(f"the ID token was issued to the client {claims.get('azp')!r}, not to {client_id!r}")
    if not isinstance(claims.get("sub"), str):
        raise LoginFailed("the ID token has no subject")


def read_logout(claims: Mapping[str, Any]) -> Ended:
    """Which sessions a checked logout token ends (OpenID Connect Back-Channel Logout)."""
    events = claims.get("events")
    if not isinstance(events, dict) or _LOGOUT_EVENT not in events or "nonce" in claims:
        raise LoginFailed("not a logout token")
    subject, session_id = claims.get("sub"), claims.get("sid")
    if not isinstance(subject, str | None) or not isinstance(session_id, str | None):
        raise LoginFailed("sub or sid of the logout token is not a string")
    if subject is None and session_id is None:
        raise LoginFailed("the logout token has neither sub nor sid")
    return Ended(subject, session_id)
