from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from tests.broker.raw_client import RawClient

from ottla.broker.config import BrokerConfig
from ottla.broker.security.users import add_user_offline
from ottla.broker.settings import Settings
from ottla.client.sasl import Scram
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

from .probed import Probed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Probed]:
    """A broker without authentication, in a separate process."""
    with Probed(tmp_path_factory.mktemp("probed"), "--http-port", "0") as probed:
        yield probed


@pytest.fixture
def client(probed: Probed) -> Iterator[RawClient]:
    with RawClient(probed.address, timeout_s=60.0) as client:
        yield client


USERS = {"admin": "admin-secret", "ann": "ann-secret"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Probed]:
    """A broker with authentication and ACLs; the admin is a super user."""
    folder = tmp_path_factory.mktemp("guarded")
    with Guarded(folder) as guarded:
        yield guarded


class Guarded(Probed):
    def __init__(self, folder: Path) -> None:
        settings = Settings(broker=BrokerConfig(data_dir=folder / "data"))
        for user, password in USERS.items():
            add_user_offline(settings, user, password, ("SCRAM-SHA-256",))
        options = {
            "security.acls": "true",
            "security.super_users": "User:admin",
            "security.failed_login_delay_ms": "1",
        }
        given = [part for name, value in options.items() for part in ("--set", f"{name}={value}")]
        super().__init__(folder, "--listener", "SASL_PLAINTEXT://127.0.0.1:0", *given)

    @property
    def audit(self) -> str:
        """The whole audit log; waits because a line is written shortly after its request is answered."""
        path, before = self.data_dir / "audit.jsonl", ""
        for _ in range(100):
            time.sleep(0.05)
            if (now := path.read_text()) and now == before:
                break
            before = now
        return before

    def logged_in(self, user: str = "ann") -> RawClient:
        client = RawClient(self.address, timeout_s=60.0)
        client.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"))
        exchange = Scram("SCRAM-SHA-256", user, USERS[user])
        first = client.ask(SaslAuthenticateRequest(auth_bytes=exchange.begin()))
        client.ask(SaslAuthenticateRequest(auth_bytes=exchange.answer(first.auth_bytes) or b""))
        return client
