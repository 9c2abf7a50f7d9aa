"""Users: password verifiers, and adding the first user while no broker runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.broker import Broker
from ottla.broker.security.checks import check_password
from ottla.broker.security.logins import MECHANISMS
from ottla.net.config import NetConfig
from ottla.net.sasl.scram import DEFAULT_ITERATIONS, make_verifier
from ottla.net.security_config import SecurityConfig
from ottla.storage.catalog.entries import ScramCredential

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.broker.settings import Settings


def credential(user: str, mechanism: str, password: str, iterations: int = DEFAULT_ITERATIONS) -> ScramCredential:
    """The stored verifier: the password cannot be derived from it."""
    made = make_verifier(mechanism, password, iterations)
    return ScramCredential(user, MECHANISMS[mechanism], made.salt, made.iterations, made.stored_key, made.server_key)


def add_user_offline(
    settings: Settings, user: str, password: str, mechanisms: Iterable[str], iterations: int = DEFAULT_ITERATIONS
) -> None:
    """In the data folder of a stopped broker; raises DataDirError if it is running."""
    check_password(settings.security, password)
    # Nothing is served, so it does not matter that no user can log in yet.
    broker = Broker(settings._replace(net=NetConfig(), security=SecurityConfig()))
    try:
        for mechanism in mechanisms:
            broker.catalog.put_credential(credential(user, mechanism, password, iterations))
    finally:
        broker.close()
