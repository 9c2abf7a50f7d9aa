"""OAUTHBEARER (RFC 7628): a signed token."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ottla.core.security import LoginFailed
from ottla.net.sasl.exchange import Challenge, LoggedIn

if TYPE_CHECKING:
    from ottla.net.sasl.exchange import Step
    from ottla.net.sasl.tokens import Tokens

_MESSAGE: Final = re.compile(
    rb"n,(?:a=(?P<authorized>[^,\x01]+))?,\x01(?:[A-Za-z]+=[^\x01]*\x01)*?"
    rb"auth=(?P<scheme>[A-Za-z]+) +(?P<token>[-_.~+/=A-Za-z0-9]+)\x01"
    rb"(?:[A-Za-z]+=[^\x01]*\x01)*\x01"
)
_REFUSAL: Final = b'{"status":"invalid_token"}'
_MOST_BYTES: Final = 64 * 1024


class OAuthBearer:
    is_slow: Final = True

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._refused: LoginFailed | None = None

    def take(self, message: bytes) -> Step:
        if self._refused is not None:
            # The client has acknowledged the rejection of its token, as the RFC requires.
            raise self._refused
        found = _MESSAGE.fullmatch(message) if len(message) <= _MOST_BYTES else None
        if found is None or found["scheme"].lower() != b"bearer":
            raise LoginFailed("malformed OAUTHBEARER message")
        try:
            checked = self._tokens.check(found["token"].decode())
            authorized = (found["authorized"] or checked.user.encode()).decode("utf-8", "replace")
            if authorized != checked.user:
                raise LoginFailed(f"user {checked.user!r} cannot act on behalf of another")  # noqa: TRY301 - answered the same way
        except LoginFailed as refused:
            self._refused = refused
            return Challenge(_REFUSAL)
        return LoggedIn(checked.user, expires_s=checked.expires_s, groups=checked.groups)
