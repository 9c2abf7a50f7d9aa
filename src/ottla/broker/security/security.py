"""All security features of a broker; disabled ones are not imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ottla.broker.security import checks
from ottla.core.errors import ConfigError
from ottla.storage.catalog.entries import NO_USER, DelegationToken, Quota, ScramCredential, ScramMechanism

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ottla.broker.authorization.authorizer import Authorizer
    from ottla.broker.broker import Broker
    from ottla.broker.requests.answers import Handler
    from ottla.broker.requests.served_api import ServedApi
    from ottla.broker.security.audit import Audit
    from ottla.broker.security.delegation_tokens import DelegationTokens
    from ottla.broker.security.logins import Logins
    from ottla.broker.security.oidc.logins import OidcLogins
    from ottla.broker.security.quotas import Quotas
    from ottla.core.ids import Address
    from ottla.net.listener_config import ListenerConfig
    from ottla.net.port import Answer
    from ottla.net.security_config import ClientCertificates
    from ottla.net.tls import ServerTls
    from ottla.storage.catalog.view import Change


class Security:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.config = broker.settings.security
        try:
            self.listeners = broker.settings.net.all_listeners(self.config)
        except ValueError as wrong:
            raise ConfigError(f"net.{wrong}") from None
        checks.check(self.listeners, self.config, has_users=self._has_users)
        self.asks_who = any(one.authenticates for one in self.listeners)
        """Whether any listener authenticates its clients."""
        self.audit = self._open_audit()
        self.logins = self._make_logins()
        self.tokens = self._make_tokens()
        self.oidc = self._make_oidc()
        self.authorizer = self._make_authorizer()
        self._quotas: Quotas | None = None
        if broker.cluster is None:
            # A shared catalog notifies in a separate thread; the catalog follower forwards the changes.
            broker.catalog.listen(self.changed)

    @property
    def warnings(self) -> list[str]:
        return checks.warnings(self.listeners, self.config, has_users=self._has_users)

    def gate(self, listener: ListenerConfig) -> Answer:
        """The gate of a SASL listener."""
        from ottla.broker.security.gate import Gate

        if self.logins is None:
            raise RuntimeError("authentication is not enabled")
        return Gate(self._broker.dispatcher, self.logins, listener.mechanisms or ()).answer

    def http_tls(
        self,
        address: Address,
        cert_file: Path | None,
        key_file: Path | None,
        client_certificates: ClientCertificates,
    ) -> ServerTls:
        """The TLS settings of the HTTP port: its own certificate, or that of all listeners."""
        from ottla.net.listener_config import ListenerConfig
        from ottla.net.tls import ServerTls

        own = ListenerConfig(
            protocol="SSL",
            host=address.host,
            port=address.port,
            cert_file=cert_file,
            key_file=key_file,
            client_certificates=client_certificates,
        )
        try:
            return ServerTls(own.completed(self.config), self.config)
        except ValueError as wrong:
            raise ConfigError(f"http.tls: {wrong}") from None

    def user_in(self, certificate: Mapping[str, Any]) -> str | None:
        """The user in a client's certificate on a port that is not a Kafka listener."""
        from ottla.net.certificate_names import PrincipalRules

        return PrincipalRules(self.config.principal_rules, self.config.principal_sources).user_in(certificate)

    def start(self) -> None:
        """Called once there is a listener, for quotas and connections."""
        self._apply_quotas()
        if self.logins is not None and self._broker.settings.net.max_connections_per_user:
            self.logins.check_room = self._broker.listener.check_room

    async def stop(self) -> None:
        """Flush the audit log while the logs are open."""
        if self.audit is not None:
            await self.audit.stop()

    def close(self) -> None:
        if self.logins is not None:
            self.logins.close()
        if self.audit is not None:
            self.audit.close()

    def around(self, served: ServedApi, handler: Handler) -> Handler:
        """The handler wrapped in quotas, authorization and auditing, as far as they are enabled."""
        if self._quotas is not None and self._quotas.are_for_clients:
            handler = self._quotas.around(served.api, handler)
        if self.audit is not None and served.audit == "read" and self.config.audit_reads:
            from ottla.broker.security.auditing import read_audited

            handler = read_audited(self.audit, handler)
        if self.authorizer is not None:
            from ottla.broker.authorization.guarding import guarded

            handler = guarded(served.rule, self.authorizer, handler)
        if self.audit is not None and served.audit == "change":
            from ottla.broker.security.auditing import audited

            handler = audited(self.audit, handler)
        return handler

    @property
    def _has_users(self) -> bool:
        return any(user != NO_USER for user, _ in self._broker.catalog.view.credentials)

    def _open_audit(self) -> Audit | None:
        if not (self.asks_who or self.config.is_audited):
            return None
        from ottla.broker.security.audit_targets import open_audit

        return open_audit(self._broker)

    def _make_logins(self) -> Logins | None:
        if not self.asks_who:
            return None
        from ottla.broker.security.logins import Logins, ensure_decoy_key

        ensure_decoy_key(self._broker.catalog)
        return Logins(self.config, lambda: self._broker.catalog.view, self.audit, self._broker.clock.now_ms)

    def _make_tokens(self) -> DelegationTokens | None:
        if self.logins is None or not self.config.delegation_token_secret:
            return None
        from ottla.broker.security.delegation_tokens import DelegationTokens

        clock = self._broker.clock
        tokens = DelegationTokens(self.config, lambda: self._broker.catalog.view.tokens)
        self.logins.find_token = lambda token_id, mechanism: tokens.find(token_id, mechanism, clock.now_ms())
        return tokens

    async def delete_expired_tokens(self) -> None:
        if self.tokens is not None and (outdated := self.tokens.outdated(self._broker.clock.now_ms())):
            await self._broker.administration.change_catalog(lambda: self._broker.catalog.delete_tokens(outdated))

    def _make_oidc(self) -> OidcLogins | None:
        if self.logins is None or not self.config.oidc_issuer:
            return None
        try:
            from ottla.broker.security.oidc.logins import OidcLogins
            from ottla.net.sasl import signatures as _signatures  # noqa: F401 - so that a missing package is noticed now
        except ImportError:
            raise ConfigError("security.oidc_issuer needs cryptography: pip install 'ottla[security]'") from None
        return OidcLogins(self.logins)

    def _make_authorizer(self) -> Authorizer | None:
        if not self.config.acls:
            return None
        from ottla.broker.authorization.authorizer import Authorizer

        return Authorizer(self.config, lambda: self._broker.catalog.view.acls, self.audit)

    def changed(self, change: Change) -> None:
        if isinstance(change.before or change.after, Quota):
            self._apply_quotas()
        if isinstance(change.before, ScramCredential) and self.logins is not None:
            self._credential_changed(change.before, cast("ScramCredential | None", change.after), self.logins)
        if isinstance(change.before, DelegationToken) and change.after is None and self.logins is not None:
            from ottla.broker.security.gate import end_token_logins

            end_token_logins(list(self._broker.listener.connections), change.before.id)

    def _credential_changed(self, before: ScramCredential, after: ScramCredential | None, logins: Logins) -> None:
        from ottla.broker.security.gate import end_logins, shorten_logins

        user, connections = before.user, list(self._broker.listener.connections)
        if after is None:
            if all((user, each) not in self._broker.catalog.view.credentials for each in ScramMechanism):
                end_logins(connections, user)
        elif after.expires_ms is not None and after.expires_ms != before.expires_ms:
            left_s = (after.expires_ms - logins.now_ms()) / 1000
            shorten_logins(connections, user, before.mechanism.name.replace("_", "-"), left_s)

    def _apply_quotas(self) -> None:
        if self._quotas is None and not self._broker.catalog.view.quotas:
            return
        if self._quotas is None:
            from ottla.broker.security.quotas import Quotas

            self._quotas = Quotas(lambda: self._broker.catalog.view.quotas)
        rates = self._broker.listener.rates
        rates.limit_of = self._quotas.connection_rate if self._quotas.are_for_addresses else None
        self._broker.dispatcher.reload_handlers()
