"""Shared by the mechanisms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Challenge:
    """To be sent; another message must follow."""

    message: bytes


@dataclass(frozen=True, slots=True)
class LoggedIn:
    user: str
    message: bytes = b""
    expires_s: float | None = None
    """When the credential expires, in seconds since 1970."""
    groups: tuple[str, ...] = ()


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


if TYPE_CHECKING:
    FindVerifier = Callable[[str, str], Verifier | None]
    """By user and mechanism, such as SCRAM-SHA-512."""
