"""Ottla's client with a secured Apache Kafka: TLS, SASL, both, and ACLs."""

import asyncio
import base64
import json
import time
from collections.abc import Iterator
from typing import Literal

import pytest
from tests.client.certificates import Certificates, make_certificates

from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_broker import KafkaBroker
from ottla.client import Client
from ottla.client.admin.topics import NewTopic
from ottla.client.connections import Purpose
from ottla.client.errors import AuthenticationFailed, AuthorizationFailed, BrokerUnavailable, ConnectionLost
from ottla.client.security import Security
from ottla.wire.messages.metadata import MetadataRequest

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
MECHANISMS: tuple[Mechanism, ...] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PASSWORDS: tuple[Mechanism, ...] = MECHANISMS[:3]
REAUTHENTICATE_MS = 1500
MODULES = "org.apache.kafka.common.security"
LOGINS = {
    "plain": f'{MODULES}.plain.PlainLoginModule required user_ann="secret";',
    "scram-sha-256": f"{MODULES}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{MODULES}.scram.ScramLoginModule required;",
    "oauthbearer": f'{MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="kafka";',
}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def guarded(
    kafka: KafkaArtifacts, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaBroker]:
    folder = tmp_path_factory.mktemp("kafka-guarded")
    own = folder / "broker.pem"
    own.write_text(certificates.key_of(certificates.broker).read_text() + certificates.broker.read_text())
    properties = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(own),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority),
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.sasl_ssl.connections.max.reauth.ms": str(REAUTHENTICATE_MS),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    for listener in ("sasl_plaintext", "sasl_ssl"):
        for mechanism, login in LOGINS.items():
            properties[f"listener.name.{listener}.{mechanism}.sasl.jaas.config"] = login
    users = [f"{mechanism}=[name=ann,password=secret]" for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")]
    broker = KafkaBroker(
        kafka,
        folder,
        properties,
        listeners=("SASL_PLAINTEXT", "SASL_SSL", "SSL"),
        format_options=[option for user in users for option in ("--add-scram", user)],
    )
    with broker:
        yield broker


def token(lifetime_s: float = 3600) -> str:
    """An unsecured token for `ann`, accepted by the test broker."""
    now = time.time()
    parts = ({"alg": "none"}, {"sub": "ann", "iat": now, "exp": now + lifetime_s})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, ""])


def credentials(mechanism: Mechanism, *, ca_file: str | None = None, password: str = "secret") -> Security:  # noqa: S107
    if mechanism == "OAUTHBEARER":
        return Security(tls=ca_file is not None, ca_file=ca_file, mechanism=mechanism, token=token)
    return Security(tls=ca_file is not None, ca_file=ca_file, mechanism=mechanism, username="ann", password=password)


async def visit(servers: str, security: Security | None) -> str | None:
    async with Client(servers, security=security, metadata_refresh_retry_count=1) as client:
        await client.router.refresh()
        return client.router.view.cluster_id


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_a_valid_password_or_token_is_accepted(
    guarded: KafkaBroker, certificates: Certificates, listener: str, mechanism: Mechanism
) -> None:
    ca_file = str(certificates.authority) if listener == "SASL_SSL" else None
    assert asyncio.run(visit(guarded.addresses[listener], credentials(mechanism, ca_file=ca_file)))


@pytest.mark.parametrize("mechanism", PASSWORDS)
def test_a_wrong_password_is_reported(guarded: KafkaBroker, mechanism: Mechanism) -> None:
    with pytest.raises(AuthenticationFailed, match="rejected the login"):
        asyncio.run(visit(guarded.addresses["SASL_PLAINTEXT"], credentials(mechanism, password="wrong")))  # noqa: S106


def test_an_expired_token_is_reported(guarded: KafkaBroker) -> None:
    old = Security(mechanism="OAUTHBEARER", token=lambda: token(lifetime_s=-3600))
    with pytest.raises(AuthenticationFailed):
        asyncio.run(visit(guarded.addresses["SASL_PLAINTEXT"], old))


def test_missing_credentials_are_reported_with_the_setting(guarded: KafkaBroker) -> None:
    with pytest.raises(ConnectionLost, match="see `security`"):
        asyncio.run(visit(guarded.addresses["SASL_PLAINTEXT"], None))


def test_plaintext_to_a_tls_listener_is_reported_with_the_setting(guarded: KafkaBroker) -> None:
    with pytest.raises(BrokerUnavailable, match="TLS"):
        asyncio.run(visit(guarded.addresses["SASL_SSL"], None))


def test_tls_to_a_plaintext_listener_fails(guarded: KafkaBroker) -> None:
    with pytest.raises(BrokerUnavailable):
        asyncio.run(visit(guarded.addresses["SASL_PLAINTEXT"], Security(tls=True)))


def test_a_client_certificate_is_required(guarded: KafkaBroker, certificates: Certificates) -> None:
    authority, own = str(certificates.authority), certificates.client
    security = Security(tls=True, ca_file=authority, cert_file=str(own), key_file=str(certificates.key_of(own)))
    assert asyncio.run(visit(guarded.addresses["SSL"], security))
    with pytest.raises((AuthenticationFailed, BrokerUnavailable), match="certificate"):
        asyncio.run(visit(guarded.addresses["SSL"], Security(tls=True, ca_file=authority)))


def test_an_untrusted_broker_is_refused(guarded: KafkaBroker) -> None:
    with pytest.raises(AuthenticationFailed, match="is not trusted"):
        asyncio.run(visit(guarded.addresses["SASL_SSL"], Security(tls=True)))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_session_is_renewed_on_the_same_connection(
    guarded: KafkaBroker, certificates: Certificates, mechanism: Mechanism
) -> None:
    async def scenario() -> int:
        security = credentials(mechanism, ca_file=str(certificates.authority))
        async with Client(guarded.addresses["SASL_SSL"], security=security) as client:
            [node_id] = client.router.view.brokers
            connection = await client.router.connection(node_id, Purpose.ASK)
            answered = 0
            until = time.monotonic() + 3 * REAUTHENTICATE_MS / 1000
            while time.monotonic() < until:
                await asyncio.gather(*(connection.ask(MetadataRequest(topics=())) for _ in range(5)))
                answered += 5
            assert connection.is_open
            return answered

    assert asyncio.run(scenario()) > 0


def test_an_unauthorized_topic_is_reported(guarded: KafkaBroker) -> None:
    async def scenario() -> None:
        async with Client(guarded.bootstrap) as client:
            await client.admin.create_topics([NewTopic(name="private")])  # it may be there from an earlier try
        async with Client(guarded.addresses["SASL_PLAINTEXT"], security=credentials("PLAIN")) as client:
            with pytest.raises(AuthorizationFailed, match=r"private.*grant the user access"):
                await client.partitions("private")

    asyncio.run(scenario())
