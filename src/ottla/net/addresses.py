"""Listening on one port of all addresses of a host name."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from ottla.core.ids import Address

if TYPE_CHECKING:
    from asyncio import Server
    from collections.abc import Awaitable, Callable

_TRIES: Final = 20


async def on_one_port(listen: Callable[[int], Awaitable[Server]], port: int) -> tuple[Server, Address]:
    """Listen on this port; 0 uses a free one, the same for all addresses of the host.

    The operating system would choose a different port for each address, so the port chosen for one is tried on all.
    """
    for _ in range(_TRIES):
        server = await listen(port)
        first = min(server.sockets, key=lambda one: one.family)
        address = Address(*first.getsockname()[:2])
        if all(one.getsockname()[1] == address.port for one in server.sockets):
            return server, address
        server.close()
        await server.wait_closed()
        try:
            return await listen(address.port), address
        except OSError as taken:
            if taken.errno != errno.EADDRINUSE:
                raise
    raise OSError(errno.EADDRINUSE, "no port is free on all addresses")
