"""OpenID Connect: requests to the provider, and validation of its responses."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from ottla.broker.security.oidc.flow import (
    ATTEMPT_S,
    Ended,
    authorization_url,
    challenge,
    check_id_token,
    logout_url,
    new_attempt,
    read_logout,
    read_metadata,
)
from ottla.core.security import LoginFailed
from ottla.core.trusted_http import is_trusted
from ottla.net.security_config import SecurityConfig

ISSUER = "https://login.example/realms/shop"
METADATA = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/auth?theme=dark",
    "token_endpoint": f"{ISSUER}/token",
    "jwks_uri": f"{ISSUER}/keys",
    "end_session_endpoint": f"{ISSUER}/logout",
    "scopes_supported": ["openid"],
}
CONFIG = SecurityConfig(oidc_issuer=ISSUER, oidc_client_id="ottla", oidc_public_url="https://ottla.example/")
LOGOUT = {"http://schemas.openid.net/event/backchannel-logout": {}}


def metadata(**changes: Any) -> bytes:
    return msgspec.json.encode({**METADATA, **changes})


def test_the_challenge_is_that_of_rfc_7636() -> None:
    assert challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def test_the_browser_is_sent_with_state_nonce_and_challenge_and_without_the_verifier() -> None:
    attempt = new_attempt(now_s=5.0)
    address = authorization_url(read_metadata(metadata(), ISSUER), CONFIG, attempt)
    sent = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    assert sent == {
        "theme": "dark",
        "response_type": "code",
        "client_id": "ottla",
        "redirect_uri": "https://ottla.example/v1/session/oidc/callback",
        "scope": "openid profile",
        "state": attempt.state,
        "nonce": attempt.nonce,
        "code_challenge": challenge(attempt.verifier),
        "code_challenge_method": "S256",
    }
    assert attempt.ends_s == 5.0 + ATTEMPT_S
    assert attempt.verifier not in address


def test_no_two_attempts_share_anything() -> None:
    first, second = new_attempt(0.0), new_attempt(0.0)
    assert len({*first[:3], *second[:3]}) == 6


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b"<html>", "not valid"),
        (metadata(issuer="https://evil.example"), "has the issuer"),
        (metadata(token_endpoint="http://login.example/token"), "not an https URL"),  # noqa: S106
        (metadata(jwks_uri="file:///etc/passwd"), "not an https URL"),
        (b'{"issuer": "x"}', "not valid"),
    ],
)
def test_an_invalid_discovery_document_is_refused(document: bytes, why: str) -> None:
    with pytest.raises(LoginFailed, match=why):
        read_metadata(document, ISSUER)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://login.example/", True),
        ("http://127.0.0.1:8080/", True),
        ("http://[::1]:8080/", True),
        ("http://localhost:8080/", True),
        ("http://localhost.evil.example/", False),
        ("http://login.example/", False),
        ("https:///nowhere", False),
        ("ftp://127.0.0.1/", False),
    ],
)
def test_plain_http_is_allowed_for_localhost_only(address: str, *, expected: bool) -> None:
    assert is_trusted(address) is expected


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"sub": "1", "nonce": "other"}, "nonce"),
        ({"sub": "1"}, "nonce"),
        ({"sub": "1", "nonce": "n", "azp": "another"}, "issued to the client"),
        ({"nonce": "n"}, "subject"),
        ({"nonce": "n", "sub": 5}, "subject"),
    ],
)
def test_an_id_token_of_another_login_is_refused(claims: dict[str, Any], why: str) -> None:
    with pytest.raises(LoginFailed, match=why):
        check_id_token(claims, "n", "ottla")


def test_an_id_token_of_this_login_is_accepted() -> None:
    check_id_token({"sub": "1", "nonce": "n", "azp": "ottla"}, "n", "ottla")
    check_id_token({"sub": "1"}, None, "ottla")


def test_a_logout_token_ends_a_session_or_all_of_a_subject() -> None:
    assert read_logout({"events": LOGOUT, "sub": "1"}) == Ended("1", None)
    assert read_logout({"events": LOGOUT, "sid": "s"}) == Ended(None, "s")


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": "1"},
        {"events": {}, "sub": "1"},
        {"events": LOGOUT},
        {"events": LOGOUT, "sub": "1", "nonce": "n"},  # an ID token cannot pass for a logout token
        {"events": LOGOUT, "sub": 1},
    ],
)
def test_an_invalid_logout_token_is_refused(claims: dict[str, Any]) -> None:
    with pytest.raises(LoginFailed, match="logout token"):
        read_logout(claims)


def test_a_provider_need_not_have_a_logout_page() -> None:
    assert logout_url(read_metadata(metadata(end_session_endpoint=""), ISSUER), CONFIG, "token") is None
    address = logout_url(read_metadata(metadata(), ISSUER), CONFIG, "token")
    assert address is not None
    assert parse_qs(urlsplit(address).query)["id_token_hint"] == ["token"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"oidc_issuer": ISSUER}, "needs oidc_client_id"),
        ({"oidc_client_id": "x"}, "without oidc_issuer"),
        (
            {"oidc_issuer": ISSUER, "oidc_client_id": "x", "oidc_public_url": "https://o", "oidc_scope": "profile"},
            "must contain openid",
        ),
    ],
)
def test_contradictory_settings_are_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        SecurityConfig(**given)
