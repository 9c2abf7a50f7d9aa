"""Server addresses: "host", "host:port", "[ipv6]:port", separated by commas."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ConfigError
from ottla.core.ids import Address

if TYPE_CHECKING:
    from collections.abc import Iterable

DEFAULT_PORT: Final = 9092
_LARGEST_PORT: Final = 65535
_IN_BRACKETS: Final = re.compile(r"\[(?P<host>[^\]]*)\](?::(?P<port>.*))?")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+._-]*://")


def parse_addresses(servers: str | Iterable[str]) -> tuple[Address, ...]:
    """The addresses in the given order, without duplicates."""
    texts = servers.split(",") if isinstance(servers, str) else list(servers)
    found = tuple(dict.fromkeys(parse_address(text) for text in texts if text.strip()))
    if not found:
        raise ConfigError('no servers given; use e.g. Client("localhost:9092")')
    return found


def parse_address(text: str) -> Address:
    stripped = text.strip()
    if _SCHEME.match(stripped):
        raise ConfigError(f"{text!r} is a URL; use host:port")
    host, port = _split(stripped)
    if not host or re.search(r"[\s/@]", host):
        raise ConfigError(f"{text!r} has no host; use host:port, or [address]:port for IPv6")
    return Address(host, DEFAULT_PORT if port is None else _port(text, port))


def _split(text: str) -> tuple[str, str | None]:
    if bracketed := _IN_BRACKETS.fullmatch(text):
        return bracketed["host"], bracketed["port"]
    if text.count(":") > 1:
        if not _is_ipv6(text):
            raise ConfigError(f"{text!r} has too many colons; use host:port, or [address]:port for IPv6")
        return text, None
    host, colon, port = text.partition(":")
    return host, port if colon else None


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def _port(text: str, port: str) -> int:
    if not (port.isascii() and port.isdigit() and 0 < int(port) <= _LARGEST_PORT):
        raise ConfigError(f"invalid port {port!r} in {text!r}; it must be 1 to {_LARGEST_PORT}")
    return int(port)
