"""The SASL exchanges, against the examples of their RFCs."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from ottla.client.errors import AuthenticationFailed
from ottla.client.sasl import OAuthBearer, Plain, Scram, exchange_for
from ottla.client.security import Security

# RFC 7677, section 3
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def scram_256() -> Scram:
    return Scram("SCRAM-SHA-256", "user", "pencil", NONCE)


def test_scram_sha_256_matches_its_rfc() -> None:
    scram = scram_256()
    assert scram.begin() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert scram.answer(SERVER_FIRST) == CLIENT_FINAL
    assert scram.answer(SERVER_FINAL) is None
    assert scram.answer(b"") is None


def test_scram_sha_512_proves_the_password_to_a_server_that_follows_the_rfc() -> None:
    scram = Scram("SCRAM-SHA-512", "user", "pencil", "abc")
    first, salt, iterations = f"r=abcdef,s={base64.b64encode(b'salt').decode()},i=4096", b"salt", 4096
    final = scram.answer(first.encode())
    assert final is not None
    bare, _, proof = final.decode().partition(",p=")
    signed = f"n=user,r=abc,{first},{bare}".encode()
    salted = hashlib.pbkdf2_hmac("sha512", b"pencil", salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha512")
    signature = hmac.digest(hashlib.sha512(client_key).digest(), signed, "sha512")
    assert bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True)) == client_key
    server_signature = hmac.digest(hmac.digest(salted, b"Server Key", "sha512"), signed, "sha512")
    assert scram.answer(b"v=" + base64.b64encode(server_signature)) is None


def test_scram_escapes_names() -> None:
    assert Scram("SCRAM-SHA-256", "a=b,c", "p", "n").begin() == b"n,,n=a=3Db=2Cc,r=n"


def test_scram_never_repeats_a_nonce() -> None:
    assert Scram("SCRAM-SHA-256", "u", "p").begin() != Scram("SCRAM-SHA-256", "u", "p").begin()


@pytest.mark.parametrize(
    ("challenge", "complaint"),
    [
        (SERVER_FIRST.replace(b"r=rOp", b"r=xxx"), "does not start with ours"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "does not start with ours"),
        (SERVER_FIRST.replace(b"i=4096", b"i=1"), "asks for 1 iterations"),
        (SERVER_FIRST.replace(b"i=4096", b"i=99999999999"), "asks for 99999999999 iterations"),
        (SERVER_FIRST.replace(b"i=4096", b"i=many"), "asks for 'many' iterations"),
        (SERVER_FIRST.replace(b"s=W22ZaJ0SNY7soEsUEjb6gQ==", b"s=!!"), "not base64"),
        (SERVER_FIRST.replace(b",i=4096", b""), "has no 'i'"),
        (b"m=ext," + SERVER_FIRST, "extension"),
        (b"", "has no 'r'"),
        (b"\xff\xfe", "not text"),
    ],
)
def test_scram_refuses_an_invalid_challenge(challenge: bytes, complaint: str) -> None:
    with pytest.raises(AuthenticationFailed, match=complaint):
        scram_256().answer(challenge)


@pytest.mark.parametrize(
    ("challenge", "complaint"),
    [
        (b"v=AAAA", "does not know the password"),
        (b"v=", "does not know the password"),
        (b"", "has no 'v'"),
        (b"e=invalid-proof", "rejected the login: invalid-proof"),
    ],
)
def test_scram_refuses_a_server_that_does_not_know_the_password(challenge: bytes, complaint: str) -> None:
    scram = scram_256()
    scram.answer(SERVER_FIRST)
    with pytest.raises(AuthenticationFailed, match=complaint):
        scram.answer(challenge)


def test_plain_sends_everything_in_one_message() -> None:
    plain = Plain("tim", "tanstaaftanstaaf")  # RFC 4616, section 4
    assert plain.begin() == b"\0tim\0tanstaaftanstaaf"
    assert plain.answer(b"") is None


def test_plain_refuses_null_characters() -> None:
    with pytest.raises(AuthenticationFailed, match="null character"):
        Plain("a\0b", "c")


def test_oauthbearer_sends_its_token_and_acknowledges_an_error() -> None:
    bearer = OAuthBearer("vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==")  # RFC 7628, section 4
    assert bearer.begin() == b"n,,\x01auth=Bearer vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==\x01\x01"
    assert bearer.answer(b"") is None
    assert bearer.answer(b'{"status":"invalid_token"}') == b"\x01"


@pytest.mark.parametrize("token", ["", "a b", "a\x01b", "a=b"])
def test_oauthbearer_refuses_an_invalid_token(token: str) -> None:
    with pytest.raises(AuthenticationFailed, match="OAUTHBEARER token"):
        OAuthBearer(token)


def test_the_mechanism_chooses_the_exchange() -> None:
    assert isinstance(exchange_for(Security(mechanism="PLAIN", username="u", password="p")), Plain)
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        assert isinstance(exchange_for(Security(mechanism=mechanism, username="u", password="p")), Scram)
    assert exchange_for(Security(mechanism="OAUTHBEARER", token=lambda: "abc")).begin() == (
        b"n,,\x01auth=Bearer abc\x01\x01"
    )
