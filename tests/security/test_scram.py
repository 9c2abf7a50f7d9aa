"""SCRAM and PLAIN in the broker: RFC examples, our client, and malformed input."""

from __future__ import annotations

import base64
import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.errors import AuthenticationFailed
from ottla.client.sasl import Plain as ClientPlain
from ottla.client.sasl import Scram as ClientScram
from ottla.core.security import LoginFailed
from ottla.net.sasl.decoys import Decoys, Shapes, shapes_of
from ottla.net.sasl.exchange import Challenge, LoggedIn
from ottla.net.sasl.plain import Passwords, Plain, parse
from ottla.net.sasl.scram import MadeVerifier, Scram, make_verifier, verifier_of

if TYPE_CHECKING:
    from ottla.net.sasl.exchange import Exchange, Step

MECHANISMS = ["SCRAM-SHA-256", "SCRAM-SHA-512"]
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
KNOWN = {(user, m): make_verifier(m, f"{user}-secret") for user in ("ann", "bob") for m in MECHANISMS}
DECOYS = Decoys(lambda: b"secret", lambda: shapes_of((m, one) for (_, m), one in KNOWN.items()))


def find(user: str, mechanism: str) -> MadeVerifier | None:
    return KNOWN.get((user, mechanism))


def log_in(client: ClientScram | ClientPlain, server: Exchange) -> Step:
    message: bytes | None = client.begin()
    while True:
        assert message is not None
        step = server.take(message)
        message = client.answer(step.message)
        if isinstance(step, LoggedIn):
            assert message is None
            return step


def test_the_example_of_rfc_7677() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    verifier = verifier_of("SCRAM-SHA-256", salt, 4096, salted)
    server = Scram("SCRAM-SHA-256", lambda *_: verifier, DECOYS, nonce="%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    first = server.take(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == Challenge(b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    last = server.take(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert last == LoggedIn("user", b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_our_client_and_the_broker_are_compatible(mechanism: str) -> None:
    assert log_in(ClientScram(mechanism, "ann", "ann-secret"), Scram(mechanism, find, DECOYS)).user == "ann"  # type: ignore[union-attr]


@given(NAMES, NAMES)
def test_any_user_name_and_password_works(user: str, password: str) -> None:
    verifier = make_verifier("SCRAM-SHA-256", password)
    step = log_in(ClientScram("SCRAM-SHA-256", user, password), Scram("SCRAM-SHA-256", lambda *_: verifier, DECOYS))
    assert isinstance(step, LoggedIn)
    assert step.user == user


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [("ann", "wrong"), ("nobody", "ann-secret"), ("bob", "ann-secret")])
def test_a_wrong_password_fails_with_the_proof_and_not_before(mechanism: str, user: str, password: str) -> None:
    client, server = ClientScram(mechanism, user, password), Scram(mechanism, find, DECOYS)
    first = server.take(client.begin())
    assert isinstance(first, Challenge)
    final = client.answer(first.message)
    assert final is not None
    with pytest.raises(LoginFailed, match="wrong password"):
        server.take(final)


def test_an_unknown_user_always_has_the_same_salt() -> None:
    salts = {Scram("SCRAM-SHA-256", find, DECOYS, "n").take(b"n,,n=nobody,r=x").message for _ in range(3)}
    assert len(salts) == 1
    assert Scram("SCRAM-SHA-256", find, DECOYS, "n").take(b"n,,n=other,r=x").message not in salts


def decoys(shapes: Shapes) -> Decoys:
    return Decoys(lambda: b"secret", lambda: shapes)


def test_the_salt_of_a_decoy_differs_between_mechanisms_as_a_users_does() -> None:
    assert DECOYS.verifier("SCRAM-SHA-256", "nobody").salt != DECOYS.verifier("SCRAM-SHA-512", "nobody").salt


def test_decoys_have_the_iterations_that_users_have_in_the_same_proportion() -> None:
    held = [make_verifier("SCRAM-SHA-256", "x", n) for n in (8192, 8192, 8192, 16384)]
    made = decoys(shapes_of(("SCRAM-SHA-256", one) for one in held))
    drawn = [made.verifier("SCRAM-SHA-256", f"user-{n}").iterations for n in range(1000)]
    assert set(drawn) == {8192, 16384}
    assert 200 < drawn.count(16384) < 300
    assert made.verifier("SCRAM-SHA-512", "nobody").iterations == 4096


def test_decoys_have_salts_like_those_of_kafkas_own_tools_where_users_do() -> None:
    salt = b"1qw7ouzpbkc8t1ckbmmz5s6wbp"
    made = decoys(shapes_of([("SCRAM-SHA-256", MadeVerifier(salt, 4096, b"", b""))]))
    drawn = [made.verifier("SCRAM-SHA-256", f"user-{n}").salt for n in range(200)]
    assert {len(one) for one in drawn} >= {25, 26}
    assert all(one.isalnum() and one == one.lower() for one in drawn)
    assert all(one.startswith(b"1") for one in drawn if len(one) == 26)


def test_a_new_user_changes_few_decoys_and_those_look_like_a_new_password() -> None:
    few = [make_verifier("SCRAM-SHA-256", "x", n) for n in [4096] * 9 + [8192] * 9]
    more = [*few, make_verifier("SCRAM-SHA-256", "x", 8192)]
    before, after = (decoys(shapes_of(("SCRAM-SHA-256", one) for one in all_)) for all_ in (few, more))
    changed = 0
    for n in range(1000):
        was, now = (one.verifier("SCRAM-SHA-256", f"user-{n}") for one in (before, after))
        assert (was.iterations == now.iterations) == (was.salt == now.salt)
        changed += was.salt != now.salt
    assert 0 < changed < 100


def begun() -> tuple[Scram, bytes]:
    client, server = ClientScram("SCRAM-SHA-256", "ann", "ann-secret"), Scram("SCRAM-SHA-256", find, DECOYS)
    final = client.answer(server.take(client.begin()).message)
    assert final is not None
    return server, final


def test_a_proof_is_valid_for_one_exchange() -> None:
    _, final = begun()
    other, _ = begun()
    with pytest.raises(LoginFailed):
        other.take(final)


@given(st.integers(0, 200), st.integers(1, 255))
def test_a_changed_byte_of_the_proof_is_noticed(at: int, by: int) -> None:
    server, final = begun()
    spoiled = bytearray(final)
    spoiled[at % len(spoiled)] ^= by
    with pytest.raises(LoginFailed):
        server.take(bytes(spoiled))


@pytest.mark.parametrize(
    "message",
    [b"", b"n,,", b"p=tls-unique,,n=ann,r=x", b"n,a=bob,n=ann,r=x", b"n,,n==ann,r=x", b"n,,r=x,n=ann", b"\xff",
     b"n,,n=ann,r=", b"n,,n=,r=x", b"n,,m=ext,n=ann,r=x", b"n,,n=ann,r=x,tokenauth=true"],
)  # fmt: skip
def test_an_invalid_first_message_is_refused(message: bytes) -> None:
    with pytest.raises(LoginFailed):
        Scram("SCRAM-SHA-256", find, DECOYS).take(message)


@given(st.lists(st.binary(max_size=300), max_size=4))
def test_random_messages_are_refused(messages: list[bytes]) -> None:
    scram = Scram("SCRAM-SHA-512", find, DECOYS)
    for message in messages:
        with suppress(LoginFailed):
            assert isinstance(scram.take(message), Challenge)


@given(st.from_regex(rb"[nyp],(a=[a-z]*)?,n=[a-z=,]*,r=[a-z,=]*", fullmatch=True))
def test_almost_valid_messages_are_refused(message: bytes) -> None:
    with suppress(LoginFailed):
        assert isinstance(Scram("SCRAM-SHA-512", find, DECOYS).take(message), Challenge)


# PLAIN


def test_plain_is_checked_against_the_verifiers() -> None:
    passwords = Passwords(find, DECOYS, lambda: 0)
    assert log_in(ClientPlain("ann", "ann-secret"), Plain(passwords)) == LoggedIn("ann")
    for user, password in (("ann", "wrong"), ("nobody", "ann-secret")):
        with pytest.raises(LoginFailed, match="wrong password"):
            log_in(ClientPlain(user, password), Plain(passwords))


def test_a_valid_password_is_cached_until_the_verifier_changes() -> None:
    held = dict(KNOWN)
    passwords = Passwords(lambda user, mechanism: held.get((user, mechanism)), DECOYS, lambda: 0)
    assert not passwords.is_remembered("ann", "ann-secret")
    assert passwords.is_right("ann", "ann-secret")
    assert passwords.is_remembered("ann", "ann-secret")
    assert not passwords.is_remembered("ann", "wrong")
    assert not passwords.is_remembered("bob", "ann-secret")
    held["ann", "SCRAM-SHA-512"] = make_verifier("SCRAM-SHA-512", "other")
    assert not passwords.is_remembered("ann", "ann-secret")
    del held["ann", "SCRAM-SHA-512"], held["ann", "SCRAM-SHA-256"]
    assert not passwords.is_remembered("ann", "ann-secret")


@given(st.binary(max_size=200))
def test_malformed_plain_messages_are_refused(message: bytes) -> None:
    try:
        user, password = parse(message)
    except LoginFailed:
        return
    assert message in (f"\0{user}\0{password}".encode(), f"{user}\0{user}\0{password}".encode())


def test_a_client_does_not_trust_a_broker_that_does_not_know_the_password() -> None:
    client = ClientScram("SCRAM-SHA-256", "ann", "ann-secret")
    server = Scram("SCRAM-SHA-256", find, DECOYS)
    client.answer(server.take(client.begin()).message)
    with pytest.raises(AuthenticationFailed):
        client.answer(b"v=" + base64.b64encode(bytes(32)))
