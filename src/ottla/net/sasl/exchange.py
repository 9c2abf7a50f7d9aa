"""What the mechanisms have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Challenge:
    """To be sent; another message has to come."""

    message: bytes


@dataclass(frozen=True, slots=True)
class LoggedIn:
    user: str
    message: bytes = b""
    expires_s: float | None = None
    """When the proof ends, as seconds since 1970."""
    groups: tuple[str, ...] = ()
    token_id: str | None = None
    """Of the delegation token that it logged in with."""


Step: TypeAlias = Challenge | LoggedIn


class Exchange(Protocol):
    """One login."""

    @property
    def is_slow(self) -> bool:
        """Whether `take` makes work on purpose, or waits for others: it belongs in a thread then."""

    def take(self, message: bytes) -> Step:
        """What the client's next message leads to; LoginFailed if it is not who it says."""


class Verifier(Protocol):
    """What proves that somebody knows a password (RFC 5802)."""

    @property
    def salt(self) -> bytes: ...
    @property
    def iterations(self) -> int: ...
    @property
    def stored_key(self) -> bytes: ...
    @property
    def server_key(self) -> bytes: ...


class FoundToken(NamedTuple):
    """A delegation token that may be logged in with."""

    verifier: Verifier
    token_id: str
    owner: str
    expires_s: float


if TYPE_CHECKING:
    FindToken = Callable[[str, str], FoundToken | None]
    """By token id and mechanism."""
    FindVerifier = Callable[[str, str], Verifier | None]
    """By user and mechanism, such as SCRAM-SHA-512."""
