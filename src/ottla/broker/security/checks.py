"""What does not fit together: said before anybody is served. Pure."""

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
    """ConfigError, if nobody could be let in, or nobody could be told from anybody else."""
    if security.acls and not any(one.authenticates for one in listeners):
        raise ConfigError(
            "security.acls: no listener asks who its clients are, so all of them are User:ANONYMOUS; "
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
        raise ConfigError(f"every listener asks for a user and password, and there is no user yet; {_ADD_A_USER}")


def warnings(listeners: Sequence[ListenerConfig], security: SecurityConfig, *, has_users: bool) -> list[str]:
    """What is allowed, and probably not meant."""
    found = []
    for one in listeners:
        if not one.is_loopback and not one.authenticates:
            found.append(f"listening on {one.host} without authentication: anyone who can reach it can read and write")
        elif not one.is_loopback and not one.uses_tls:
            found.append(f"{one} is not encrypted: whoever is on the way can read and change everything")
        if not one.uses_tls and "PLAIN" in (one.mechanisms or ()) and one.uses_sasl:
            found.append(f"{one} takes passwords with PLAIN and is not encrypted: use SCRAM or SASL_SSL")
    if security.acls:
        found += _of_acls(listeners, security)
    elif any(one.authenticates for one in listeners):
        found.append("security.acls is false: whoever logs in can read and write everything")
    if not has_users and not _PASSWORDS.isdisjoint(_mechanisms(listeners)):
        found.append(f"a listener asks for a user and password, and there is no user yet; {_ADD_A_USER}")
    return found


def _of_acls(listeners: Sequence[ListenerConfig], security: SecurityConfig) -> list[str]:
    found = []
    if not security.super_users:
        found.append("security.acls is true without security.super_users: who may not alter ACLs now never will")
    if security.allow_everyone_if_no_acl:
        found.append("security.allow_everyone_if_no_acl: what has no ACL is open to everybody")
    found += [
        f"{one} does not ask who its clients are: they are User:ANONYMOUS to the ACLs"
        for one in listeners
        if not one.authenticates
    ]
    return found


def _mechanisms(listeners: Sequence[ListenerConfig]) -> set[str]:
    return {mechanism for one in listeners if one.uses_sasl for mechanism in one.mechanisms or ()}
