"""Ottla's client with every listener and mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.client.errors import AuthenticationFailed, ClientError
from ottla.client.security import Security

from .securing import ALL_MECHANISMS

if TYPE_CHECKING:
    from .securing import Secured

QUICK = {"request_timeout_ms": 3000, "metadata_refresh_retry_count": 1}


def topics(broker: Secured, protocol: str, security: Security | None) -> set[str]:
    with ottla.Admin(broker.address(protocol), security=security, **QUICK) as admin:
        return set(admin.list_topics())


@pytest.mark.parametrize("mechanism", ALL_MECHANISMS)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_a_user_logs_in(broker: Secured, protocol: str, mechanism: str) -> None:
    security = broker.login("ann", mechanism, tls=protocol == "SASL_SSL")
    assert topics(broker, protocol, security) is not None


def test_plaintext_and_tls_listeners_need_no_login(broker: Secured) -> None:
    assert topics(broker, "PLAINTEXT", None) is not None
    assert topics(broker, "SSL", Security(tls=True, ca_file=str(broker.authority.cert))) is not None


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_refused(broker: Secured, mechanism: str) -> None:
    wrong = Security(mechanism=mechanism, username="ann", password="wrong")  # type: ignore[arg-type]
    with pytest.raises(AuthenticationFailed):
        topics(broker, "SASL_PLAINTEXT", wrong)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_an_unknown_user_gets_the_same_error(broker: Secured, mechanism: str) -> None:
    refusals = []
    for user in ("ann", "nobody"):
        wrong = Security(mechanism=mechanism, username=user, password="wrong")  # type: ignore[arg-type]
        with pytest.raises(AuthenticationFailed) as refused:
            topics(broker, "SASL_PLAINTEXT", wrong)
        refusals.append(str(refused.value))
    assert refusals[0] == refusals[1]


def test_unauthenticated_clients_are_not_served(broker: Secured) -> None:
    with pytest.raises(ClientError):
        topics(broker, "SASL_PLAINTEXT", None)


def test_messages_go_through_tls_both_ways(broker: Secured) -> None:
    security = broker.login("ann")
    values = [b"%d" % number * 1000 for number in range(500)]
    with ottla.Producer(broker.address("SASL_SSL"), security=security) as producer:
        for value in values:
            producer.send("through-tls", value)
    with ottla.Consumer(
        broker.address("SASL_SSL"), "through-tls", security=security, auto_offset_reset="earliest"
    ) as consumer:
        read = []
        for message in consumer:
            read.append(message.value)
            if len(read) == len(values):
                break
    assert read == values
