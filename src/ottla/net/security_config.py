"""Settings for authentication and authorization."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - looked up when values are converted
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from ottla.net.certificate_names import PrincipalRules, PrincipalSource

Mechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
ClientCertificates: TypeAlias = Literal["none", "requested", "required"]

AuditTarget: TypeAlias = Literal["file", "syslog", "topic"]

_NOT_NEGATIVE: Final = (
    "session_max_ms",
    "password_min_length",
    "password_max_age_ms",
    "failed_login_delay_ms",
    "oauth_clock_skew_ms",
    "audit_max_bytes",
    "audit_max_age_ms",
    "audit_files_kept",
)
_POSITIVE: Final = (
    "delegation_token_max_lifetime_ms",
    "delegation_token_expiry_ms",
    "delegation_token_expiry_check_interval_ms",
)


class SecurityConfig(Struct, frozen=True, kw_only=True):
    cert_file: Path | None = None
    """The certificate chain of this broker, in PEM; reloaded when it changes."""
    key_file: Path | None = None
    """The key of cert_file, in PEM, if it is not in the same file."""
    key_password: str = ""
    """The passphrase of key_file."""
    client_ca_file: Path | None = None
    """CA certificates for client certificates, in PEM."""
    client_certificates: ClientCertificates = "none"
    """Whether clients must present a certificate: none, requested or required."""
    principal_rules: tuple[str, ...] = ("DEFAULT",)
    """Maps certificate names to principals, like Kafka's ssl.principal.mapping.rules; the first match applies."""
    principal_sources: tuple[PrincipalSource, ...] = ("subject",)
    """The sources of a certificate's name: subject, or subject alternative names (dns, uri, email); tried in order."""
    client_crl_file: Path | None = None
    """Certificate revocation lists of the CAs in client_ca_file, in PEM; reloaded when they change."""
    tls_min_version: Literal["TLSv1.2", "TLSv1.3"] = "TLSv1.2"
    """The minimum TLS version."""
    mechanisms: tuple[Mechanism, ...] = ("SCRAM-SHA-512", "SCRAM-SHA-256")
    """The enabled SASL mechanisms: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER."""
    session_max_ms: int = 0
    """The session lifetime before clients must re-authenticate; 0 for the lifetime of the connection."""
    failed_login_delay_ms: int = 100
    """Delay of the response to a failed login."""
    password_min_length: int = 0
    """Minimum password length, checked where the broker sees the password: REST and ottla user add --data-dir."""
    password_min_character_kinds: int = 0
    """How many of lower case, upper case, digits and other characters a password must have; checked like its length."""
    password_denied_file: Path | None = None
    """A file of passwords that are not accepted, one per line, in any case; checked like the length."""
    password_max_age_ms: int = 0
    """How long a password is valid after it was set, unless an earlier expiry is given; 0 for no limit."""
    oauth_jwks: str = ""
    """The JWKS for tokens: a file, or an https URL."""
    oauth_issuer: str = ""
    """The required issuer of tokens."""
    oauth_audience: str = ""
    """The required audience of tokens."""
    oauth_principal_claim: str = "sub"
    """The token claim with the user name."""
    oauth_groups_claim: str = ""
    """The token claim with the user's groups, each a principal such as Group:sales; none if empty."""
    oauth_clock_skew_ms: int = 30_000
    """The allowed clock skew between this machine and the issuer."""
    oidc_issuer: str = ""
    """The OpenID Connect issuer for logins to the console and REST, exactly as in its tokens."""
    oidc_client_id: str = ""
    """The client id of this broker at the provider."""
    oidc_client_secret: str = ""
    """The secret of oidc_client_id, if any."""
    oidc_public_url: str = ""
    """The URL of the console as seen by browsers, such as https://ottla.example:8080."""
    oidc_scope: str = "openid profile"
    """The requested scopes, separated by spaces."""
    oidc_principal_claim: str = "sub"
    """The ID token claim with the user name."""
    oidc_groups_claim: str = ""
    """The ID token claim with the user's groups, each a principal such as Group:sales; none if empty."""
    delegation_token_secret: str = ""
    """The key that delegation token secrets are derived from, the same on all nodes; empty disables tokens."""
    delegation_token_max_lifetime_ms: int = 7 * 24 * 3600 * 1000
    """Maximum lifetime of a delegation token, including renewals."""
    delegation_token_expiry_ms: int = 24 * 3600 * 1000
    """How long a delegation token is valid without renewal."""
    delegation_token_expiry_check_interval_ms: int = 3600 * 1000
    """How often expired delegation tokens are deleted."""
    acls: bool = False
    """Whether to enforce ACLs."""
    super_users: tuple[str, ...] = ()
    """Principals with all permissions, such as "User:admin"."""
    allow_everyone_if_no_acl: bool = False
    """Whether all users may access resources without ACLs."""
    audit_file: Path | None = None
    """The audit log: logins, refusals and administrative changes; with users, audit.jsonl in the data folder."""
    audit_targets: tuple[AuditTarget, ...] = ("file",)
    """Where audit lines go: file, syslog, and topic for the internal topic __ottla_audit."""
    audit_max_bytes: int = 100 << 20
    """Rotate the audit file before it exceeds this size; 0 for never."""
    audit_max_age_ms: int = 0
    """Rotate the audit file when its first line is this old; 0 for never."""
    audit_files_kept: int = 10
    """How many rotated audit files are kept; 0 for all."""
    audit_syslog: str = "/dev/log"
    """Where syslog listens for audit lines: a socket file, or HOST:PORT over UDP."""
    audit_reads: bool = False
    """Whether reading topics is audited, too: a line for each user, address and topic every five minutes."""

    def __post_init__(self) -> None:
        for name in _NOT_NEGATIVE:
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        if not 0 <= self.password_min_character_kinds <= 4:
            raise ValueError(f"password_min_character_kinds must be 0 to 4, got {self.password_min_character_kinds}")
        PrincipalRules(self.principal_rules)
        if not self.principal_sources:
            raise ValueError("principal_sources must be one or more of subject, dns, uri and email, got nothing")
        self._check_oauth()
        self._check_oidc()
        self._check_acls()
        self._check_audit()
        for name in _POSITIVE:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    @property
    def is_audited(self) -> bool:
        """Whether an audit log was configured, even if no listener authenticates its clients."""
        return self.audit_file is not None or self.audit_reads or self.audit_targets != ("file",)

    def _check_oauth(self) -> None:
        if self.oauth_jwks.startswith("http://"):
            raise ValueError("oauth_jwks must be a file or an https URL; http is not authenticated")
        if self.oauth_jwks and not (self.oauth_issuer and self.oauth_audience):
            raise ValueError(
                "oauth_jwks needs oauth_issuer and oauth_audience, or any token signed by these keys would be accepted"
            )
        if "OAUTHBEARER" in self.mechanisms and not self.oauth_jwks:
            raise ValueError("mechanisms has OAUTHBEARER, which needs oauth_jwks")

    def _check_oidc(self) -> None:
        given = [name for name in ("oidc_client_id", "oidc_client_secret", "oidc_public_url") if getattr(self, name)]
        if not self.oidc_issuer and given:
            raise ValueError(f"{given[0]} has no effect without oidc_issuer")
        if self.oidc_issuer and not (self.oidc_client_id and self.oidc_public_url):
            raise ValueError("oidc_issuer needs oidc_client_id and oidc_public_url")
        if self.oidc_issuer and "openid" not in self.oidc_scope.split():
            raise ValueError(f"oidc_scope must contain openid, got {self.oidc_scope!r}")

    def _check_acls(self) -> None:
        for user in self.super_users:
            kind, colon, name = user.partition(":")
            if not (colon and kind and name):
                raise ValueError(f"super_users must be principals such as User:admin, got {user!r}")
        if not self.acls and (self.super_users or self.allow_everyone_if_no_acl):
            given = "super_users" if self.super_users else "allow_everyone_if_no_acl"
            raise ValueError(f"{given} has no effect without acls = true")

    def _check_audit(self) -> None:
        if not self.audit_targets or len(set(self.audit_targets)) < len(self.audit_targets):
            given = ", ".join(self.audit_targets) or "nothing"
            raise ValueError(f"audit_targets must be one or more of file, syslog and topic, got {given}")
        if self.audit_file is not None and "file" not in self.audit_targets:
            raise ValueError("audit_file has no effect: audit_targets does not contain file")
