"""Users: password verifiers, and adding the first user while no broker runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ottla.broker.broker import Broker
from ottla.broker.security.logins import MECHANISMS
from ottla.broker.security.passwords import check_password, expiry
from ottla.net.config import NetConfig
from ottla.net.sasl.scram import DEFAULT_ITERATIONS, make_verifier
from ottla.net.security_config import SecurityConfig
from ottla.storage.catalog.entries import ScramCredential

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.broker.settings import Settings


def credential(
    user: str,
    mechanism: str,
    password: str,
    iterations: int = DEFAULT_ITERATIONS,
    expires_ms: int | None = None,
) -> ScramCredential:
    """The stored verifier: the password cannot be derived from it."""
    made = make_verifier(mechanism, password, iterations)
    keys = made.stored_key, made.server_key
    return ScramCredential(user, MECHANISMS[mechanism], made.salt, made.iterations, *keys, expires_ms)


def add_user_offline(  # noqa: PLR0913 - as many as a user has
    settings: Settings,
    user: str,
    password: str,
    mechanisms: Iterable[str],
    iterations: int = DEFAULT_ITERATIONS,
    expires_ms: int = -1,
) -> None:
    """Add a user in the data folder of a stopped broker; raises DataDirError if it is running.

    `expires_ms` is 0 for never, -1 for the configured default.
    """
    check_password(settings.security, user, password)
    expires_at_ms = expiry(settings.security, expires_ms, round(time.time() * 1000))
    # No requests are served, so it does not matter that no user can log in yet.
    broker = Broker(settings._replace(net=NetConfig(), security=SecurityConfig()))
    try:
        for mechanism in mechanisms:
            broker.catalog.put_credential(credential(user, mechanism, password, iterations, expires_at_ms))
    finally:
        broker.close()
