"""Tokens: signatures, claims, expiry, keys."""

from __future__ import annotations

import hashlib
import hmac
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, utils
from hypothesis import given
from hypothesis import strategies as st

from ottla.core.errors import ConfigError
from ottla.core.security import LoginFailed
from ottla.net.key_source import KeySource
from ottla.net.sasl.exchange import Challenge, LoggedIn
from ottla.net.sasl.oauthbearer import OAuthBearer
from ottla.net.sasl.signatures import Keys
from ottla.net.sasl.tokens import CheckedToken, TokenRules, Tokens, check_validity, read_claims

from .certificates import Authority
from .tokens import AUDIENCE, ISSUER, Issuer, encoded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW_S = 1_000_000.0
RULES = TokenRules(issuer=ISSUER, audience=AUDIENCE, clock_skew_s=30)
TIMES = {"iat": NOW_S, "exp": NOW_S + 60}


def check_claims(claims: dict[str, Any], rules: TokenRules, now_s: float) -> CheckedToken:
    check_validity(claims, rules, now_s)
    return read_claims(claims, rules)


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Issuer:
    return Issuer(tmp_path_factory.mktemp("issuer"))


@pytest.fixture(scope="module")
def tokens(issuer: Issuer) -> Tokens:
    return Tokens(RULES, KeySource(str(issuer.jwks)), lambda: NOW_S)


def test_a_valid_token_is_accepted(issuer: Issuer, tokens: Tokens) -> None:
    assert tokens.check(issuer.token("ann", **TIMES)) == ("ann", NOW_S + 60, ())
    assert tokens.check(issuer.token("ann", aud=["other", AUDIENCE], **TIMES)).user == "ann"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"exp": NOW_S - 31}, "expired"),
        ({"exp": None}, "has no expiry time"),
        ({"exp": "tomorrow"}, "not a valid time"),
        ({"exp": True}, "not a valid time"),
        ({"nbf": NOW_S + 31}, "not valid yet"),
        ({"iat": NOW_S + 31}, "not valid yet"),
        ({"iss": "https://evil.example"}, "wrong issuer"),
        ({"iss": None}, "wrong issuer"),
        ({"aud": "other"}, "wrong audience"),
        ({"aud": None}, "wrong audience"),
        ({"aud": AUDIENCE + "x"}, "wrong audience"),
        ({"sub": None}, "has no claim"),
        ({"sub": ""}, "has no claim"),
        ({"sub": 5}, "has no claim"),
    ],
)
def test_a_token_with_invalid_claims_is_refused(
    issuer: Issuer, tokens: Tokens, changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(LoginFailed, match=why):
        tokens.check(issuer.token("ann", **(TIMES | changes)))


def test_a_small_clock_skew_is_allowed() -> None:
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": NOW_S}
    assert check_claims(claims, RULES, NOW_S + 30).user == "ann"
    with pytest.raises(LoginFailed):
        check_claims(claims, RULES, NOW_S + 31)


def test_a_token_signed_by_another_key_is_refused(issuer: Issuer, tokens: Tokens, tmp_path: Path) -> None:
    other = Issuer(tmp_path)
    for head in ({}, {"kid": "unknown"}):
        with pytest.raises(LoginFailed, match="does not match any key"):
            tokens.check(other.token("ann", head=head, **TIMES))
    with pytest.raises(LoginFailed, match="does not match any key"):
        tokens.check(issuer.token("ann", head={"kid": "unknown"}, **TIMES))


@pytest.mark.parametrize("algorithm", ["none", "None", "", "HS256", "RS255", "ES256", "EdDSA", "PS256", 5, None])
def test_the_tokens_algorithm_header_is_not_trusted(issuer: Issuer, tokens: Tokens, algorithm: object) -> None:
    with pytest.raises(LoginFailed):
        tokens.check(issuer.token("ann", head={"alg": algorithm}, **TIMES))


def test_a_public_key_is_not_accepted_as_an_hmac_secret(issuer: Issuer, tokens: Tokens) -> None:
    head, claims = encoded(b'{"alg":"HS256","kid":"one"}'), encoded(json.dumps(issuer.claims(**TIMES)).encode())
    for secret in (issuer.jwks.read_bytes(), b""):
        signature = hmac.digest(secret, f"{head}.{claims}".encode(), hashlib.sha256)
        with pytest.raises(LoginFailed):
            tokens.check(f"{head}.{claims}.{encoded(signature)}")
    unsigned = encoded(b'{"alg":"none"}')
    with pytest.raises(LoginFailed):
        tokens.check(f"{unsigned}.{claims}.")


def test_an_unknown_critical_extension_is_refused(issuer: Issuer, tokens: Tokens) -> None:
    with pytest.raises(LoginFailed, match="extension"):
        tokens.check(issuer.token("ann", head={"crit": ["exp"]}, **TIMES))


def test_a_modified_token_is_refused(issuer: Issuer, tokens: Tokens) -> None:
    head, _, signature = issuer.token("ann", **TIMES).split(".")
    claims = encoded(json.dumps(issuer.claims("admin", **TIMES)).encode())
    with pytest.raises(LoginFailed, match="does not match any key"):
        tokens.check(f"{head}.{claims}.{signature}")


def test_other_key_types_are_supported() -> None:
    signed = b"head.claims"
    curve = ec.generate_private_key(ec.SECP256R1())
    edwards = ed25519.Ed25519PrivateKey.generate()
    numbers = curve.public_key().public_numbers()
    document = {
        "keys": [
            {"kty": "EC", "crv": "P-256", "x": encoded(numbers.x.to_bytes(32)), "y": encoded(numbers.y.to_bytes(32))},
            {"kty": "OKP", "crv": "Ed25519", "x": encoded(edwards.public_key().public_bytes_raw())},
            {"kty": "oct", "k": "AAAA"},
            {"kty": "RSA", "n": encoded(b"\1" * 64), "e": "AQAB"},
            {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        ]
    }
    keys = Keys(json.dumps(document).encode())
    r, s = utils.decode_dss_signature(curve.sign(signed, ec.ECDSA(hashes.SHA256())))
    keys.check({"alg": "ES256"}, signed, r.to_bytes(32) + s.to_bytes(32))
    keys.check({"alg": "EdDSA"}, signed, edwards.sign(signed))
    for head in ({"alg": "ES256"}, {"alg": "EdDSA"}, {"alg": "ES512"}):
        with pytest.raises(LoginFailed):
            keys.check(head, signed, bytes(64))


@pytest.mark.parametrize("content", ["", "{}", '{"keys": []}', '{"keys": [{"kty": "oct"}]}', "[1]"])
def test_a_file_without_keys_is_refused_at_the_start(tmp_path: Path, content: str) -> None:
    (tmp_path / "jwks.json").write_text(content)
    with pytest.raises(ConfigError, match="oauth_jwks"):
        KeySource(str(tmp_path / "jwks.json")).check()


def test_new_keys_in_the_file_are_used(tmp_path: Path) -> None:
    first = Issuer(tmp_path)
    tokens = Tokens(RULES, KeySource(str(first.jwks)), lambda: NOW_S)
    assert tokens.check(first.token("ann", **TIMES)).user == "ann"
    second = Issuer(tmp_path, "two")
    assert tokens.check(second.token("ann", **TIMES)).user == "ann"
    with pytest.raises(LoginFailed):
        tokens.check(first.token("ann", **TIMES))


@given(st.text(max_size=200))
def test_malformed_tokens_are_refused(text: str) -> None:
    tokens = Tokens(RULES, lambda: pytest.fail("it is not even looked at"), lambda: NOW_S)
    try:
        tokens.check(text)
    except LoginFailed:
        return
    pytest.fail(text)


@given(
    st.dictionaries(
        st.sampled_from(["iss", "aud", "exp", "nbf", "sub"]),
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.floats(),
            st.text(max_size=5),
            st.lists(st.integers(), max_size=2),
        ),
    )
)
def test_malformed_claims_are_refused(claims: dict[str, Any]) -> None:
    with pytest.raises(LoginFailed):
        check_claims(claims, RULES, NOW_S)


# The exchange


def bearer(token: str, before: str = "n,,", after: str = "\x01\x01") -> bytes:
    return f"{before}\x01auth=Bearer {token}{after}".encode()


def test_the_exchange(issuer: Issuer, tokens: Tokens) -> None:
    token = issuer.token("ann", **TIMES)
    for message in (bearer(token), bearer(token, "n,a=ann,"), bearer(token, after="\x01host=h\x01port=1\x01\x01")):
        assert OAuthBearer(tokens).take(message) == LoggedIn("ann", expires_s=NOW_S + 60)


def test_an_error_is_sent_and_acknowledged(issuer: Issuer, tokens: Tokens) -> None:
    for message in (bearer(issuer.token("ann", exp=1)), bearer(issuer.token("ann", **TIMES), "n,a=bob,")):
        exchange = OAuthBearer(tokens)
        assert exchange.take(message) == Challenge(b'{"status":"invalid_token"}')
        with pytest.raises(LoginFailed):
            exchange.take(b"\x01")


@given(st.binary(max_size=300))
def test_malformed_exchanges_are_refused(message: bytes) -> None:
    tokens = Tokens(RULES, lambda: pytest.fail("it is not even looked at"), lambda: NOW_S)
    with pytest.raises(LoginFailed):
        OAuthBearer(tokens).take(message)


class _KeyServer:
    """Serves `document` over https, and counts requests."""

    def __init__(self, folder: Path) -> None:
        self.document = b""
        self.asked = 0
        authority = Authority(folder)
        served = authority.server()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                self.send_response(200 if outer.document else 503)
                self.end_headers()
                self.wfile.write(outer.document)

            def log_message(self, *_: object) -> None:
                pass

        self.ca_file = authority.cert
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(served.cert, served.key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://localhost:{self._server.server_port}/keys"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def key_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_KeyServer]:
    server = _KeyServer(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(server.ca_file))
    yield server
    server.close()


def test_keys_of_a_jwks_address_are_refreshed_periodically(issuer: Issuer, key_server: _KeyServer) -> None:
    time_s = 0.0
    tokens = Tokens(RULES, KeySource(key_server.url, lambda: time_s), lambda: NOW_S)
    token = issuer.token("ann", **TIMES)
    key_server.document = issuer.jwks.read_bytes()
    assert [tokens.check(token).user for _ in range(3)] == ["ann"] * 3
    assert key_server.asked == 1
    time_s = 301.0
    key_server.document = b""
    assert tokens.check(token).user == "ann", "known keys stay valid while the address is unreachable"
    assert key_server.asked == 2


def test_logins_fail_until_the_jwks_address_answers(issuer: Issuer, key_server: _KeyServer) -> None:
    time_s = 0.0
    tokens = Tokens(RULES, KeySource(key_server.url, lambda: time_s), lambda: NOW_S)
    token = issuer.token("ann", **TIMES)
    for _ in range(2):
        with pytest.raises(LoginFailed, match="no keys to verify"):
            tokens.check(token)
    assert key_server.asked == 1
    key_server.document = issuer.jwks.read_bytes()
    time_s = 11.0
    assert tokens.check(token).user == "ann"


def test_keys_of_an_address_with_an_untrusted_certificate_are_refused(
    issuer: Issuer, key_server: _KeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    key_server.document = issuer.jwks.read_bytes()
    with pytest.raises(LoginFailed, match="no keys to verify"):
        Tokens(RULES, KeySource(key_server.url), lambda: NOW_S).check(issuer.token("ann", **TIMES))


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (["staff", "sales"], ("Group:sales", "Group:staff")),
        ("staff sales", ("Group:sales", "Group:staff")),
        ([], ()),
        (None, ()),
    ],
)
def test_groups_of_a_token(groups: object, expected: tuple[str, ...]) -> None:
    rules = TokenRules(issuer=ISSUER, audience=AUDIENCE, groups_claim="groups")
    claims: dict[str, Any] = {"sub": "ann"} if groups is None else {"sub": "ann", "groups": groups}
    assert read_claims(claims, rules).groups == expected
    assert read_claims(claims, RULES).groups == ()  # not asked for


@pytest.mark.parametrize("groups", [5, [5], [""], {"a": 1}, ["x"] * 1001])
def test_groups_that_are_not_a_list_of_names(groups: object) -> None:
    rules = TokenRules(issuer=ISSUER, audience=AUDIENCE, groups_claim="groups")
    with pytest.raises(LoginFailed, match="groups"):
        read_claims({"sub": "ann", "groups": groups}, rules)


def test_a_redirect_of_the_jwks_address_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Redirecting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(302)
            self.send_header("location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Redirecting) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            # As if it were https: the certificate does not matter here.
            monkeypatch.setattr(KeySource, "_is_address", True)
            with pytest.raises(LoginFailed):
                KeySource(f"http://127.0.0.1:{server.server_port}/jwks")()
        finally:
            server.shutdown()
            thread.join()
    assert asked == ["/jwks"]
