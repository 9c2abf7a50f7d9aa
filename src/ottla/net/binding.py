"""Binding a port on all addresses of a host name."""

from __future__ import annotations

import asyncio
import errno
import socket
from contextlib import ExitStack
from typing import Any, Final

_BACKLOG: Final = 1024
_TRIES: Final = 20


async def bind_without_blocking(host: str, port: int) -> list[socket.socket]:
    """`bind`, with the name resolved in a thread. An IP address needs neither a thread nor the IDNA tables."""
    if _is_ip_address(host):
        return bind(host, port)
    return await asyncio.get_running_loop().run_in_executor(None, bind, host, port)


def bind(host: str, port: int) -> list[socket.socket]:
    """Bind this port on all addresses; 0 uses a free one, the same for all. Raises OSError if it is not available."""
    # Python encodes a str as IDNA, whose tables take 2 ms to import.
    name = host.encode() if host.isascii() else host
    found = list(dict.fromkeys(socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)))
    for _ in range(_TRIES):
        try:
            return _bind_all(found)
        except OSError as refused:
            if port or refused.errno != errno.EADDRINUSE:
                raise
    raise OSError(errno.EADDRINUSE, "no port is free on all addresses")


def _bind_all(found: list[tuple[Any, ...]]) -> list[socket.socket]:
    """The operating system would choose a free port for each address: that of the first is used for all."""
    port = 0
    with ExitStack() as undoing:
        bound: list[socket.socket] = []
        for family, kind, protocol, _, (address, wanted, *scope) in found:
            listening = undoing.enter_context(socket.socket(family, kind, protocol))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listening.bind((address, wanted or port, *scope))
            listening.listen(_BACKLOG)
            listening.setblocking(False)  # noqa: FBT003 - its only argument
            port = listening.getsockname()[1]
            bound.append(listening)
        undoing.pop_all()
    return bound


def _is_ip_address(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, UnicodeError):
            continue
        return True
    return False
