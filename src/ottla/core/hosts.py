"""Loopback hosts."""

from __future__ import annotations

from typing import Final

_LOOPBACK: Final = ("localhost", "localhost.", "::1", "[::1]")


def is_loopback(host: str) -> bool:
    """Whether a listen address is a loopback address. Not by prefix: `localhost.example.org` and `127.example.org` may
    be any machine.
    """
    parts = host.split(".")
    return host.lower() in _LOOPBACK or (
        len(parts) == 4 and parts[0] == "127" and all(part.isascii() and part.isdigit() for part in parts)
    )
