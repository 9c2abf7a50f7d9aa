"""How many connections an address or a user may have, and which passwords are accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.broker.raw_client import HungUpError, RawClient

from ottla.broker.config import BrokerConfig
from ottla.broker.security.users import add_user_offline
from ottla.broker.settings import Settings
from ottla.client.sasl import Scram
from ottla.core.errors import ErrorCode, PolicyViolation
from ottla.net.config import NetConfig
from ottla.net.security_config import SecurityConfig
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

from .securing import PASSWORDS, secured

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.wire.messages.sasl_authenticate import SaslAuthenticateResponse

    from .securing import Secured


def log_in(broker: Secured, user: str) -> tuple[RawClient, SaslAuthenticateResponse]:
    client = RawClient(broker.address("SASL_PLAINTEXT"))
    client.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"))
    exchange = Scram("SCRAM-SHA-256", user, PASSWORDS[user])
    first = client.ask(SaslAuthenticateRequest(auth_bytes=exchange.begin()))
    return client, client.ask(SaslAuthenticateRequest(auth_bytes=exchange.answer(first.auth_bytes) or b""))


def test_connections_per_user_are_limited(tmp_path: Path) -> None:
    with secured(tmp_path, net={"max_connections_per_user": 2}) as broker:
        held = [log_in(broker, "ann") for _ in range(2)]
        assert [answer.error_code for _, answer in held] == [ErrorCode.NONE] * 2
        refused, answer = log_in(broker, "ann")
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer.error_message == "User:ann has 2 connections; net.max_connections_per_user is 2"
        other, answer = log_in(broker, "bob")
        assert answer.error_code == ErrorCode.NONE
        for client in (refused, other, *(client for client, _ in held)):
            client.close()
        while broker.embedded.broker.listener.connections:
            pass
        again, answer = log_in(broker, "ann")
        assert answer.error_code == ErrorCode.NONE
        again.close()


def test_an_address_can_have_its_own_limit(tmp_path: Path) -> None:
    limits = {"max_connections_per_address_overrides": ("127.0.0.1:1",)}
    with secured(tmp_path, net=limits) as broker:
        asked = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        with RawClient(broker.address("PLAINTEXT")) as first, RawClient(broker.address("PLAINTEXT")) as second:
            assert first.ask(asked).error_code == ErrorCode.NONE
            with pytest.raises((HungUpError, ConnectionError)):
                second.ask(asked)


def test_an_invalid_limit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"such as \"10.0.0.7:100\", got '10.0.0.7'"):
        NetConfig(max_connections_per_address_overrides=("10.0.0.7",))
    assert NetConfig(max_connections_per_address_overrides=("[::1]:5",)).connections_by_address() == {"::1": 5}


def test_a_short_password_is_refused(tmp_path: Path) -> None:
    settings = Settings(
        broker=BrokerConfig(data_dir=tmp_path / "data"), security=SecurityConfig(password_min_length=12)
    )
    with pytest.raises(PolicyViolation, match=r"has 5 characters; security.password_min_length is 12"):
        add_user_offline(settings, "ann", "short", ("SCRAM-SHA-256",))
    add_user_offline(settings, "ann", "long enough for it", ("SCRAM-SHA-256",))
