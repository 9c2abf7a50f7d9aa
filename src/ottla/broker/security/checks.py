"""Checks for inconsistent security settings at the start. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.net.listener_config import ListenerConfig
    from ottla.net.security_config import SecurityConfig

_PASSWORDS: Final = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"})
_ADD_A_USER: Final = "add one with: ottla user add NAME --data-dir FOLDER"


def check(listeners: Sequence[ListenerConfig], security: SecurityConfig, *, has_users: bool) -> None:
    """Raises ConfigError if no client could log in, or clients could not be identified."""
    if security.acls and not any(one.authenticates for one in listeners):
        raise ConfigError(
            "security.acls: no listener authenticates its clients, so all of them are User:ANONYMOUS; "
            "make one SASL_SSL, or SSL with client_certificates = required"
        )
    if security.oidc_issuer and not any(one.authenticates for one in listeners):
        raise ConfigError(
            "security.oidc_issuer: no listener authenticates its clients, so Kafka clients would not have to log in; "
            "make every listener SASL_SSL, or SSL with client_certificates = required"
        )
    if "OAUTHBEARER" in _mechanisms(listeners) and not security.oauth_jwks:
        raise ConfigError("a listener has the mechanism OAUTHBEARER, which needs security.oauth_jwks")
    if not has_users and all(one.uses_sasl and _PASSWORDS.issuperset(one.mechanisms or ()) for one in listeners):
        raise ConfigError(f"every listener requires a password, but there is no user yet; {_ADD_A_USER}")


def warnings(listeners: Sequence[ListenerConfig], security: SecurityConfig, *, has_users: bool) -> list[str]:
    """Settings that are allowed but probably unintended."""
    found = []
    for one in listeners:
        if not one.is_loopback and not one.authenticates:
            found.append(f"listening on {one.host} without authentication: anyone who can reach it can read and write")
        elif not one.is_loopback and not one.uses_tls:
            found.append(f"{one} is not encrypted: all traffic can be read and changed in transit")
        if not one.uses_tls and "PLAIN" in (one.mechanisms or ()) and one.uses_sasl:
            found.append(f"{one} accepts passwords with PLAIN without encryption: use SCRAM or SASL_SSL")
    if security.acls:
        found += _of_acls(listeners, security)
    elif any(one.authenticates for one in listeners):
        found.append("security.acls is false: all users can read and write everything")
    if not has_users and not _PASSWORDS.isdisjoint(_mechanisms(listeners)):
        found.append(f"a listener requires a password, but there is no user yet; {_ADD_A_USER}")
    return found


def _of_acls(listeners: Sequence[ListenerConfig], security: SecurityConfig) -> list[str]:
    found = []
    if not security.super_users:
        found.append(
            "security.acls is true without security.super_users: without ALTER on the cluster, ACLs cannot be changed"
        )
    if security.allow_everyone_if_no_acl:
        found.append("security.allow_everyone_if_no_acl: resources without ACLs are open to all clients")
    found += [
        f"{one} does not authenticate its clients: ACLs treat them as User:ANONYMOUS"
        for one in listeners
        if not one.authenticates
    ]
    return found


def _mechanisms(listeners: Sequence[ListenerConfig]) -> set[str]:
    return {mechanism for one in listeners if one.uses_sasl for mechanism in one.mechanisms or ()}
