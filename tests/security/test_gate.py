"""The authentication gate: requests before login, re-authentication, and raw SASL messages of old clients."""

from __future__ import annotations

import base64
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from tests.broker.raw_client import HungUpError, RawClient

import ottla
from ottla.client.sasl import Plain, Scram
from ottla.core.errors import ErrorCode
from ottla.core.security import ScramMechanism
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

from .securing import ALL_MECHANISMS, PASSWORDS, Secured, secured

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

METADATA = MetadataRequest(topics=())


@pytest.fixture
def client(broker: Secured) -> Iterator[RawClient]:
    with RawClient(broker.address("SASL_PLAINTEXT")) as client:
        yield client


def log_in(client: RawClient, user: str = "ann", password: str | None = None) -> SaslAuthenticateResponse:
    assert client.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-256")).error_code == ErrorCode.NONE
    exchange = Scram("SCRAM-SHA-256", user, password or PASSWORDS[user])
    first = client.ask(SaslAuthenticateRequest(auth_bytes=exchange.begin()))
    final = exchange.answer(first.auth_bytes)
    assert final is not None
    return client.ask(SaslAuthenticateRequest(auth_bytes=final))


def test_before_a_login_only_handshake_requests_are_answered(client: RawClient) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    assert client.ask(request).error_code == ErrorCode.NONE
    client.send(METADATA)
    with pytest.raises(HungUpError):
        client.receive_frame()


def test_after_a_login_all_requests_are_answered(client: RawClient) -> None:
    answer = log_in(client)
    assert (answer.error_code, answer.session_lifetime_ms) == (ErrorCode.NONE, 0)
    assert client.ask(METADATA).brokers


def test_an_incomplete_login_does_not_authenticate(client: RawClient) -> None:
    client.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"))
    client.ask(SaslAuthenticateRequest(auth_bytes=Scram("SCRAM-SHA-256", "ann", "x").begin()))
    client.send(METADATA)
    with pytest.raises(HungUpError):
        client.receive_frame()


def test_a_failed_login_is_answered_and_closes_the_connection(client: RawClient) -> None:
    answer = log_in(client, "ann", "wrong")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "ann" not in (answer.error_message or "")
    with pytest.raises((HungUpError, OSError)):
        client.ask(METADATA)


def test_an_unsupported_mechanism_is_refused(client: RawClient) -> None:
    answer = client.ask(SaslHandshakeRequest(mechanism="GSSAPI"))
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ALL_MECHANISMS


def test_authenticate_without_handshake_is_refused(client: RawClient) -> None:
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=b"\0ann\0x"))
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_a_listener_without_sasl_refuses_logins(broker: Secured) -> None:
    with RawClient(broker.address("PLAINTEXT")) as client:
        assert client.ask(SaslHandshakeRequest(mechanism="PLAIN")).error_code == ErrorCode.ILLEGAL_SASL_STATE
        answer = client.ask(SaslAuthenticateRequest(auth_bytes=b""))
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_a_large_request_before_a_login_is_refused_by_its_size(client: RawClient) -> None:
    client.send_bytes(struct.pack(">i", 90 << 20) + bytes(1000))
    with pytest.raises(HungUpError):
        client.receive_frame()


def test_a_client_that_has_not_logged_in_cannot_make_the_broker_hold_more_than_512_kib(tmp_path: Path) -> None:
    with (
        secured(tmp_path, failed_login_delay_ms=60_000) as broker,
        RawClient(broker.address("SASL_PLAINTEXT")) as client,
    ):
        client.ask(SaslHandshakeRequest(mechanism="PLAIN"))
        client.send(SaslAuthenticateRequest(auth_bytes=b"wrong"))
        [connection] = broker.embedded.broker.listener.connections
        client.socket.settimeout(0.2)
        most = sent = 0
        frame = struct.pack(">i", 100_000) + bytes(100_000)
        with suppress(TimeoutError):
            while sent < 64 << 20:
                sent += client.socket.send(frame)
                most = max(most, connection.held_bytes)
        # Of which one request of 128 KiB, the one that is being answered, is not counted.
        assert 0 < most <= (512 - 128) << 10


def test_after_a_login_large_requests_are_read(client: RawClient) -> None:
    log_in(client)
    names = tuple(MetadataRequestTopic(name=f"{n:0249}") for n in range(1000))
    assert len(client.ask(MetadataRequest(topics=names)).topics) == 1000


def bare(client: RawClient, message: bytes) -> None:
    client.send_bytes(struct.pack(">i", len(message)) + message)


def test_version_0_of_the_handshake_is_followed_by_raw_messages(client: RawClient) -> None:
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), version=0).error_code == ErrorCode.NONE
    bare(client, Plain("ann", PASSWORDS["ann"]).begin())
    assert client.receive_frame() == b""
    assert client.ask(METADATA).brokers


def test_a_wrong_password_in_a_raw_message_closes_the_connection(client: RawClient) -> None:
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"), version=0)
    bare(client, Plain("ann", "wrong").begin())
    with pytest.raises(HungUpError):
        client.receive_frame()


# Re-authentication: KIP-368


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(tmp_path_factory.mktemp("impatient"), session_max_ms=600) as broker:
        yield broker


def test_a_login_lasts_for_its_announced_lifetime(impatient: Secured) -> None:
    with RawClient(impatient.address("SASL_PLAINTEXT")) as client:
        assert log_in(client).session_lifetime_ms == 600
        assert client.ask(METADATA).brokers
        with pytest.raises((HungUpError, OSError)):  # noqa: PT012 - it ends when it ends
            while True:
                client.ask(METADATA)


def test_a_re_authenticated_client_continues(impatient: Secured) -> None:
    with RawClient(impatient.address("SASL_PLAINTEXT")) as client:
        began_s = time.monotonic()
        while time.monotonic() - began_s < 1.0:
            assert log_in(client).error_code == ErrorCode.NONE
            assert client.ask(METADATA).brokers


def test_re_authentication_cannot_change_the_user(impatient: Secured) -> None:
    with RawClient(impatient.address("SASL_PLAINTEXT")) as client:
        assert log_in(client, "ann").error_code == ErrorCode.NONE
        assert log_in(client, "bob").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        with pytest.raises((HungUpError, OSError)):
            client.ask(METADATA)


def test_our_client_re_authenticates_automatically(impatient: Secured) -> None:
    logins = impatient.embedded.broker.security.logins
    assert logins is not None
    with ottla.Admin(impatient.address("SASL_SSL"), security=impatient.login("ann", "PLAIN")) as admin:
        admin.list_topics()
        connections = impatient.embedded.broker.listener.counts["accepted"]
        before = logins.counts["PLAIN succeeded"]
        deadline_s = time.monotonic() + 10
        while logins.counts["PLAIN succeeded"] < before + 2:
            assert time.monotonic() < deadline_s
            admin.list_topics()
        assert impatient.embedded.broker.listener.counts["accepted"] == connections


def test_a_login_with_a_token_ends_with_the_token(broker: Secured) -> None:
    with RawClient(broker.address("SASL_PLAINTEXT")) as client:
        client.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"))
        token = broker.issuer.token("ann", exp=time.time() + 50)
        answer = client.ask(SaslAuthenticateRequest(auth_bytes=f"n,,\x01auth=Bearer {token}\x01\x01".encode()))
        assert 40_000 < answer.session_lifetime_ms <= 50_000


def test_an_expired_token_is_refused(broker: Secured) -> None:
    with RawClient(broker.address("SASL_PLAINTEXT")) as client:
        client.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"))
        token = broker.issuer.token("ann", exp=time.time() - 100)
        first = client.ask(SaslAuthenticateRequest(auth_bytes=f"n,,\x01auth=Bearer {token}\x01\x01".encode()))
        assert first.auth_bytes == b'{"status":"invalid_token"}'
        last = client.ask(SaslAuthenticateRequest(auth_bytes=b"\x01"))
        assert last.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_failed_login_is_counted_and_audited(tmp_path: Path) -> None:
    with secured(tmp_path) as broker:
        with RawClient(broker.address("SASL_PLAINTEXT")) as client:
            log_in(client, "ann", "wrong")
        logins: Any = broker.embedded.broker.security.logins
        assert logins.counts == {"SCRAM-SHA-256 failed": 1}
        [line] = broker.audit()
        assert (line["event"], line["mechanism"]) == ("login failed", "SCRAM-SHA-256")
        assert line["peer"].startswith("127.0.0.1:")
        assert "wrong password for user 'ann'" in line["reason"]


# Challenges do not reveal users


def challenge(broker: Secured, user: str, mechanism: str) -> tuple[bytes, int]:
    """The salt and the iterations that a client is shown for this user."""
    with RawClient(broker.address("SASL_PLAINTEXT")) as client:
        client.ask(SaslHandshakeRequest(mechanism=mechanism))
        first = client.ask(SaslAuthenticateRequest(auth_bytes=f"n,,n={user},r=x".encode()))
    told = dict(part.split("=", 1) for part in first.auth_bytes.decode().split(","))
    return base64.b64decode(told["s"]), int(told["i"])


def test_a_challenge_does_not_reveal_whether_a_user_exists(tmp_path: Path) -> None:
    mechanisms = ("SCRAM-SHA-256", "SCRAM-SHA-512")
    with secured(tmp_path) as broker, broker.admin() as admin:
        for user in ("admin", "ann", "bob"):
            admin.set_password(user, PASSWORDS[user], tuple(ScramMechanism), 8192)
        for user in ("ann", "nobody"):
            salts, iterations = zip(*(challenge(broker, user, one) for one in mechanisms), strict=True)
            assert len(set(salts)) == 2, user
            assert iterations == (8192, 8192), user


def test_an_unknown_user_is_shown_the_same_challenge_after_a_restart(tmp_path: Path) -> None:
    shown = []
    for _ in range(2):
        with secured(tmp_path) as broker:
            shown.append(challenge(broker, "nobody", "SCRAM-SHA-512"))
            with broker.admin() as admin:
                assert set(admin.list_users()) == set(PASSWORDS)
    assert shown[0] == shown[1]
