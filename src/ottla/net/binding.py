"""Binding a port on all addresses of a host name, before it is served."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from typing import Final

_BACKLOG: Final = 1024


def bind(host: str, port: int) -> list[socket.socket]:
    """Bind this port on all addresses; 0 uses a free one, the same for all. Raises OSError if it is not available."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    with ExitStack() as undoing:
        bound: list[socket.socket] = []
        for family, kind, protocol, _, (address, *_) in dict.fromkeys(found):
            listening = undoing.enter_context(socket.socket(family, kind, protocol))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listening.bind((address, port))
            listening.listen(_BACKLOG)
            listening.setblocking(False)  # noqa: FBT003 - its only argument
            port = listening.getsockname()[1]
            bound.append(listening)
        undoing.pop_all()
    return bound
