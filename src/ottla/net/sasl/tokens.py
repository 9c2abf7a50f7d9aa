"""JWT validation (RFC 7519): signature, issuer, audience, lifetime, and the user."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.core.security import GROUP_TYPE, LoginFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ottla.net.sasl.signatures import Keys

_MOST_BYTES: Final = 32 * 1024
_MOST_GROUPS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRules:
    issuer: str
    audience: str
    principal_claim: str = "sub"
    groups_claim: str = ""
    clock_skew_s: float = 30.0


class CheckedToken(NamedTuple):
    user: str
    expires_s: float
    groups: tuple[str, ...] = ()
    """Groups as principals, such as Group:sales."""


class Tokens:
    def __init__(self, rules: TokenRules, keys: Callable[[], Keys], now_s: Callable[[], float]) -> None:
        self._rules = rules
        self._keys = keys
        self._now_s = now_s

    def check(self, token: str) -> CheckedToken:
        """The user of the token; raises LoginFailed with the reason if it is not valid. May wait for the JWKS."""
        return read_claims(self.claims(token), self._rules)

    def claims(self, token: str) -> dict[str, Any]:
        """The claims of a valid token. May wait for the JWKS."""
        head, claims, signed, signature = split(token)
        self._keys().check(head, signed, signature)
        check_validity(claims, self._rules, self._now_s())
        return claims


def split(token: str) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes]:
    parts = token.split(".")
    if len(parts) != 3 or len(token) > _MOST_BYTES:
        raise LoginFailed("token is not a valid JWT")
    head, claims = _json(parts[0]), _json(parts[1])
    if head.get("crit") is not None:
        raise LoginFailed("token has an unknown critical extension")
    return head, claims, f"{parts[0]}.{parts[1]}".encode(), decoded(parts[2])


def check_validity(claims: Mapping[str, Any], rules: TokenRules, now_s: float) -> None:
    """Raises LoginFailed unless issuer, audience and lifetime are valid."""
    if claims.get("iss") != rules.issuer:
        raise LoginFailed("token has the wrong issuer")
    audience = claims.get("aud")
    if rules.audience not in (audience if isinstance(audience, list) else [audience]):
        raise LoginFailed("token has the wrong audience")
    expires_s = _time(claims, "exp")
    if expires_s is None:
        raise LoginFailed("token has no expiry time")
    if now_s > expires_s + rules.clock_skew_s:
        raise LoginFailed("token has expired")
    for claim in ("nbf", "iat"):
        begins_s = _time(claims, claim)
        if begins_s is not None and now_s < begins_s - rules.clock_skew_s:
            raise LoginFailed(f"token is not valid yet ({claim})")


def read_claims(claims: Mapping[str, Any], rules: TokenRules) -> CheckedToken:
    """The user and groups of valid claims."""
    user = claims.get(rules.principal_claim)
    if not isinstance(user, str) or not user:
        raise LoginFailed(f"token has no claim {rules.principal_claim}")
    return CheckedToken(user, _time(claims, "exp") or 0.0, _groups(claims, rules.groups_claim))


def _groups(claims: Mapping[str, Any], claim: str) -> tuple[str, ...]:
    """The groups: a list of names, as most providers use, or space-separated names, like a scope."""
    if not claim:
        return ()
    listed = claims.get(claim, ())
    names = listed.split() if isinstance(listed, str) else listed
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
        raise LoginFailed(f"token claim {claim} must be a list of names")
    if len(names) > _MOST_GROUPS:
        raise LoginFailed(f"token claim {claim} has {len(names)} groups, at most {_MOST_GROUPS} are allowed")
    return tuple(sorted(f"{GROUP_TYPE}{name}" for name in names))


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise LoginFailed(f"token claim {name} is not a valid time")
    return float(value)


def _json(part: str) -> dict[str, Any]:
    try:
        found = json.loads(decoded(part))
    except (ValueError, RecursionError):
        raise LoginFailed("token is not a valid JWT") from None
    if not isinstance(found, dict):
        raise LoginFailed("token is not a valid JWT")
    return found


def decoded(part: str) -> bytes:
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise LoginFailed("token is not a valid JWT") from None
