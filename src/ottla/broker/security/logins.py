"""Shared state of logins: verifiers, tokens and counters."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar

from ottla.core.errors import StorageError
from ottla.core.security import LoginFailed, PasswordExpired
from ottla.net.sasl.decoys import Decoys, shapes_of
from ottla.net.sasl.exchange import LoggedIn
from ottla.net.sasl.login_throttle import LoginThrottle
from ottla.net.sasl.plain import Passwords, Plain
from ottla.net.sasl.scram import Scram
from ottla.storage.catalog.entries import NO_USER, ScramCredential, ScramMechanism

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ottla.broker.security.audit import Audit
    from ottla.net.sasl.decoys import Shapes
    from ottla.net.sasl.exchange import Exchange, FindToken, Step, Verifier
    from ottla.net.sasl.tokens import CheckedToken, Tokens
    from ottla.net.security_config import SecurityConfig
    from ottla.storage.catalog.catalog import Catalog
    from ottla.storage.catalog.view import CatalogView

T = TypeVar("T")

_logger: Final = logging.getLogger(__name__)

_MOST_REPORTED: Final = 10_000
_THREADS: Final = 2
MECHANISMS: Final = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
_NAMES: Final = {code: name for name, code in MECHANISMS.items()}
_DECOY_KEY: Final = NO_USER, ScramMechanism.SCRAM_SHA_512
_KEY_BYTES: Final = 64


class Logins:
    def __init__(
        self,
        config: SecurityConfig,
        view: Callable[[], CatalogView],
        audit: Audit | None,
        now_ms: Callable[[], int],
    ) -> None:
        self.config = config
        self.now_ms = now_ms
        self.counts: Counter[str] = Counter()
        """The number of logins, by mechanism and outcome."""
        self._view = view
        self._audit = audit
        self._decoys = _decoys(view)
        self.check_room: Callable[[str], None] = lambda _: None
        """Raises TooManyConnections if the user's limit is reached; set if there is a limit."""
        self.find_token: FindToken | None = None
        """Set if delegation tokens are enabled."""
        self.passwords = Passwords(self._find, self._decoys, now_ms)
        self._tokens = _tokens(config)
        self._reported: set[str] = set()
        self._guessing = LoginThrottle()
        # Separate threads: a flood of passwords must not block disk operations.
        self._threads = ThreadPoolExecutor(_THREADS, "ottla-login")

    def exchange(self, mechanism: str) -> Exchange:
        if mechanism == "PLAIN":
            return Plain(self.passwords)
        if mechanism in MECHANISMS:
            return Scram(mechanism, self._find, self._decoys, find_token=self.find_token)
        from ottla.net.sasl.oauthbearer import OAuthBearer

        return OAuthBearer(self._known_tokens())

    async def take(self, exchange: Exchange, message: bytes) -> Step:
        if exchange.is_slow:
            return await self.in_thread(lambda: exchange.take(message))
        return exchange.take(message)

    async def by_password(self, user: str, password: str, peer: str) -> str:
        """Verify a password and return the principal; raises LoginFailed for a wrong password."""
        if not self.passwords.is_remembered(user, password):
            await self.counted("basic", peer, self._check_password(user, password, peer))
            self.noted("basic", f"User:{user}", peer)
        return f"User:{user}"

    async def by_token(self, token: str, peer: str) -> CheckedToken:
        """Verify a token and return its principal; raises LoginFailed if it is invalid."""
        return await self.counted("bearer", peer, self.in_thread(lambda: self._known_tokens().check(token)))

    async def _check_password(self, user: str, password: str, peer: str) -> LoggedIn:
        await self.wait_for_turn(peer)
        if not await self.in_thread(lambda: self.passwords.is_right(user, password)):
            raise LoginFailed(f"wrong password for user {user!r}")
        self.check_password_login(user, self.passwords.expires_s(user))
        return LoggedIn(user)

    def check_password_login(self, user: str, expires_s: float | None) -> None:
        """Checks after a correct password: raises LoginFailed if the user was deleted or the password has expired."""
        if not self.passwords.is_known(user):
            raise LoginFailed(f"user {user!r} was deleted")
        if expires_s is not None and expires_s * 1000 <= self.now_ms():
            when = datetime.fromtimestamp(expires_s, UTC).isoformat(timespec="seconds")
            raise PasswordExpired(f"the password of user {user!r} expired at {when}: ask for a new one")

    async def counted(self, how: str, peer: str, checked: Awaitable[T]) -> T:
        try:
            found = await checked
        except LoginFailed as refused:
            await self.failed(how, peer, refused)
            raise
        self.succeeded(how, peer)
        return found

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def in_thread(self, work: Callable[[], T]) -> Awaitable[T]:
        return asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def wait_for_turn(self, peer: str) -> None:
        """Delay attempts of an address with many failures; raises LoginFailed if too many are waiting."""
        wait_s = self._guessing.wait_s(_host(peer), time.monotonic())
        if wait_s is None:
            raise LoginFailed("too many failed logins from this address")
        if wait_s:
            await asyncio.sleep(wait_s)

    def succeeded(self, mechanism: str, peer: str) -> None:
        self.counts[f"{mechanism} succeeded"] += 1
        self._guessing.succeeded(_host(peer))

    def noted(self, mechanism: str, principal: str, peer: str) -> None:
        """Audit a successful login."""
        if self._audit is not None:
            self._audit.logged_in(mechanism, principal, peer)

    async def failed(self, mechanism: str, peer: str, refused: LoginFailed) -> None:
        """Audit and delay a failed login, to slow down guessing."""
        self.counts[f"{mechanism} failed"] += 1
        self._guessing.failed(_host(peer), time.monotonic())
        if self._audit is not None:
            self._audit.login_failed(mechanism, peer, str(refused))
        host = _host(peer)
        if host not in self._reported:
            if len(self._reported) >= _MOST_REPORTED:
                self._reported.clear()
            self._reported.add(host)
            _logger.warning("login failed: %s from %s: %s", mechanism, peer, refused)
        await asyncio.sleep(self.config.failed_login_delay_ms / 1000)

    def _find(self, user: str, mechanism: str) -> Verifier | None:
        if user == NO_USER:
            return None
        return self._view().credentials.get((user, MECHANISMS[mechanism]))

    def _known_tokens(self) -> Tokens:
        if self._tokens is None:
            raise LoginFailed("tokens are not supported: security.oauth_jwks is not set")
        return self._tokens


def _host(peer: str) -> str:
    return peer.rpartition(":")[0]


def ensure_decoy_key(catalog: Catalog) -> None:
    """Generate the key of SCRAM decoys, unless it exists. It must survive a restart."""
    if _DECOY_KEY in catalog.view.credentials:
        return
    try:
        catalog.put_credential(ScramCredential(*_DECOY_KEY, b"", 0, secrets.token_bytes(_KEY_BYTES), b""))
    except StorageError as refused:
        _logger.warning("could not store the key of SCRAM decoys: %s", refused)


def _decoys(view: Callable[[], CatalogView]) -> Decoys:
    spare = secrets.token_bytes(_KEY_BYTES)
    counted: tuple[object, Shapes] = None, Counter()

    def secret() -> bytes:
        held = view().credentials.get(_DECOY_KEY)
        return spare if held is None else held.stored_key

    def shapes() -> Shapes:
        nonlocal counted
        credentials = view().credentials
        if credentials is not counted[0]:
            users = ((_NAMES[one.mechanism], one) for one in credentials.values() if one.user != NO_USER)
            counted = credentials, shapes_of(users)
        return counted[1]

    return Decoys(secret, shapes)


def _tokens(config: SecurityConfig) -> Tokens | None:
    if not config.oauth_jwks:
        return None
    from ottla.net.key_source import KeySource
    from ottla.net.sasl.tokens import TokenRules, Tokens

    keys = KeySource(config.oauth_jwks)
    keys.check()
    rules = TokenRules(
        issuer=config.oauth_issuer,
        audience=config.oauth_audience,
        principal_claim=config.oauth_principal_claim,
        groups_claim=config.oauth_groups_claim,
        clock_skew_s=config.oauth_clock_skew_ms / 1000,
    )
    return Tokens(rules, keys, time.time)
