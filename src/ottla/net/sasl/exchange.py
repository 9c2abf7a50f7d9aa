"""Types shared by the SASL mechanisms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Challenge:
    """A message to send; the client must answer it."""

    message: bytes


@dataclass(frozen=True, slots=True)
class LoggedIn:
    user: str
    message: bytes = b""
    expires_s: float | None = None
    """When the credential expires, in seconds since 1970."""
    groups: tuple[str, ...] = ()
    token_id: str | None = None
    """The id of the delegation token that was used to log in."""


Step: TypeAlias = Challenge | LoggedIn


class Exchange(Protocol):
    """One authentication."""

    @property
    def is_slow(self) -> bool:
        """Whether `take` is slow or blocks: run it in a thread."""

    def take(self, message: bytes) -> Step:
        """Process the client's next message; LoginFailed if authentication fails."""


class Verifier(Protocol):
    """A SCRAM verifier (RFC 5802)."""

    @property
    def salt(self) -> bytes: ...
    @property
    def iterations(self) -> int: ...
    @property
    def stored_key(self) -> bytes: ...
    @property
    def server_key(self) -> bytes: ...
    @property
    def expires_ms(self) -> int | None:
        """When it expires, in milliseconds since 1970; None for never."""


class FoundToken(NamedTuple):
    """A delegation token that is valid for a login."""

    verifier: Verifier
    token_id: str
    owner: str
    expires_s: float


if TYPE_CHECKING:
    FindToken = Callable[[str, str], FoundToken | None]
    """By token id and mechanism."""
    FindVerifier = Callable[[str, str], Verifier | None]
    """By user and mechanism, such as SCRAM-SHA-512."""
