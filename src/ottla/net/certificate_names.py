"""The principal of a client certificate: its distinguished name as Java formats it, and Kafka's mapping rules.

The name follows RFC 2253, most specific part first: `CN=ann,OU=sales,O=example`. A rule is `DEFAULT`, which
uses it unchanged, or `RULE:pattern/replacement/` with an optional `L` or `U` (ssl.principal.mapping.rules).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

PrincipalSource: TypeAlias = Literal["subject", "dns", "uri", "email"]
"""The source of a principal's name in a certificate: its subject, or a kind of subject alternative name (SAN)."""

_SAN_KINDS: Final = {"dns": "DNS", "uri": "URI", "email": "email"}
_KEYWORDS: Final = {
    "commonName": "CN",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
_RULE: Final = r"RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)"
_GROUP: Final = r"\$(\d+)"
_SPECIAL: Final = r'([,+"\\<>;])'


def distinguished_name(subject: Iterable[Iterable[tuple[str, str]]]) -> str:
    """The distinguished name of a subject as returned by `SSLObject.getpeercert`."""
    parts = ["+".join(f"{_KEYWORDS.get(key, key)}={_escaped(value)}" for key, value in part) for part in subject]
    return ",".join(reversed(parts))


def _escaped(value: str) -> str:
    text = re.sub(_SPECIAL, r"\\\1", value)
    if text[:1] in ("#", " "):
        text = "\\" + text
    return text[:-1] + "\\ " if text.endswith(" ") and len(text) > 1 else text


def names_in(certificate: Mapping[str, Any], sources: Iterable[PrincipalSource]) -> list[str]:
    """The names from these sources, in this order, in a certificate as returned by `SSLObject.getpeercert`."""
    names = []
    for source in sources:
        if source == "subject":
            names.append(distinguished_name(certificate.get("subject", ())))
        else:
            kind = _SAN_KINDS[source]
            names += [value for each, value in certificate.get("subjectAltName", ()) if each == kind]
    return names


class PrincipalRules:
    def __init__(self, rules: Sequence[str], sources: Sequence[PrincipalSource] = ("subject",)) -> None:
        self._rules = [_parsed(rule) for rule in rules]
        self._sources = tuple(sources)

    def user_in(self, certificate: Mapping[str, Any]) -> str | None:
        """The user named by a certificate: the first of its names that a rule matches, mapped."""
        users = (self.user_of(name) for name in names_in(certificate, self._sources))
        return next((user for user in users if user), None)

    def user_of(self, name: str) -> str | None:
        """The name mapped by the first matching rule; None if none matches."""
        for pattern, replacement, case in self._rules:
            found = pattern.fullmatch(name)
            if found is None:
                continue
            user = found.expand(replacement)
            return {"L": user.lower(), "U": user.upper()}.get(case, user)
        return None


def _parsed(rule: str) -> tuple[re.Pattern[str], str, str]:
    if rule == "DEFAULT":
        return re.compile(r"(.*)", re.DOTALL), r"\1", ""
    parts = re.fullmatch(_RULE, rule)
    if parts is None:
        raise ValueError(f"principal_rules must be DEFAULT or RULE:pattern/replacement/[LU], got {rule!r}")
    try:
        pattern = re.compile(parts[1].replace("\\/", "/"))
        # Java's $1 is Python's \1; a backslash in Java's replacement escapes the next character.
        replacement = re.sub(_GROUP, r"\\g<\1>", parts[2].replace("\\", "\\\\"))
        re.sub(pattern, replacement, "")
    except (re.error, IndexError) as wrong:
        raise ValueError(f"principal_rules: {rule!r} is invalid: {wrong}") from None
    return pattern, replacement, parts[3]
