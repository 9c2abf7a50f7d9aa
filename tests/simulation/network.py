"""Connections in memory: each direction of each link has its delays, and may be cut."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import socket
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol

from .parties import Party, current_party

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from .loop import SimLoop

_HIGH_WATER: Final = 64 * 1024
_LEAST_S: Final = 0.0002
_SPREAD_S: Final = 0.0018
PACKET_S: Final = 0.0001
"""Writes within this time arrive together."""
_NOBODYS: Final = contextvars.Context()
_FIRST_PORT: Final = 40_000


class Stalled(Protocol):
    """Something that arrives once its link is healed."""

    def arrive_soon(self) -> None: ...


class Link:
    """One direction between two hosts."""

    def __init__(self) -> None:
        self.is_cut = False
        self.slow_s = 0.0
        self.stalled: list[Stalled] = []

    def delay_s(self, chance: random.Random) -> float:
        delay_s = _LEAST_S + _SPREAD_S * chance.random()
        return delay_s + self.slow_s * chance.random() if self.slow_s else delay_s


class Network:
    def __init__(self, chance: random.Random) -> None:
        self.loop: SimLoop
        self.chance = chance
        self._links: dict[tuple[str, str], Link] = {}
        self._servers: dict[tuple[str, int], Server] = {}
        self._transports: dict[Transport, None] = {}
        self._ports = _FIRST_PORT

    def link(self, source: str, target: str) -> Link:
        link = self._links.get((source, target))
        if link is None:
            link = self._links[source, target] = Link()
        return link

    def cut(self, source: str, target: str) -> None:
        self.link(source, target).is_cut = True

    def heal(self, source: str, target: str) -> None:
        link = self.link(source, target)
        link.is_cut = False
        stalled, link.stalled = link.stalled, []
        for transport in stalled:
            transport.arrive_soon()

    def heal_all(self) -> None:
        for (source, target), link in self._links.items():
            link.slow_s = 0.0
            self.heal(source, target)

    def delay_s(self, source: str, target: str) -> float:
        return self.link(source, target).delay_s(self.chance)

    # What the loop asks

    def listen(self, factory: Callable[[], Any], host: str, port: int) -> Server:
        party = current_party()
        assert party is not None, "nobody listens"
        server = Server(self, factory, host, port, party)
        self._servers[host, port] = server
        return server

    async def connect(self, factory: Callable[[], Any], host: str, port: int) -> tuple[Transport, Any]:
        party = current_party()
        assert party is not None, "nobody connects"
        await self._until_it_passes(party.host, host)
        server = self._servers.get((host, port))
        if server is None or server.party.is_dead:
            if server is not None and server.party.is_silent:
                await asyncio.sleep(3600)
            await self._until_it_passes(host, party.host)
            raise ConnectionRefusedError(111, "refused")
        while server.party.is_paused:  # noqa: ASYNC110 - the kernel answers, and the process does not
            await asyncio.sleep(0.2)
        self._ports += 1
        ours = Transport(self, contextvars.copy_context(), party, (party.host, self._ports), (host, port))
        theirs = Transport(self, server.context.copy(), server.party, (host, port), (party.host, self._ports))
        ours.peer, theirs.peer = theirs, ours
        self._transports[ours] = self._transports[theirs] = None
        theirs.begin(server.context.run(server.factory), at_once=True)
        await self._until_it_passes(host, party.host)
        protocol = factory()
        ours.begin(protocol, at_once=False)
        return ours, protocol

    async def _until_it_passes(self, source: str, target: str) -> None:
        await asyncio.sleep(self.delay_s(source, target))
        again_s = 0.1
        while self.link(source, target).is_cut:
            # As a SYN is sent again and again.
            again_s = min(2 * again_s, 1.0)
            await asyncio.sleep(again_s)

    # What faults do

    def forget(self, party: Party, *, tells_others: bool) -> None:
        """The process died; `resets` says whether its machine resets connections."""
        for key, server in list(self._servers.items()):
            if server.party is party and tells_others:
                del self._servers[key]
        for transport in [each for each in self._transports if each.party is party]:
            transport.die(tells_peer=tells_others)

    def reset_some(self, source: str, target: str) -> int:
        """Connections between these hosts break."""
        count = 0
        for transport in list(self._transports):
            if transport.sockname[0] == source and transport.peername[0] == target:
                transport.break_off()
                count += 1
        return count

    def drop(self, transport: Transport) -> None:
        self._transports.pop(transport, None)

    def reset_leftovers(self, host: str) -> None:
        """A rebooted machine resets old connections."""
        for transport in list(self._transports):
            if transport.peername[0] == host and transport.peer.party.is_dead:
                transport.lose_soon(ConnectionResetError(104, "reset"))

    def close_server(self, server: Server) -> None:
        if self._servers.get((server.host, server.port)) is server:
            del self._servers[server.host, server.port]


class Server:
    """As `asyncio.Server`, and its own socket."""

    family = socket.AF_INET

    def __init__(self, network: Network, factory: Callable[[], Any], host: str, port: int, party: Party) -> None:
        self.factory = factory
        self.host = host
        self.port = port
        self.party = party
        self.context = contextvars.copy_context()
        self._network = network

    @property
    def sockets(self) -> list[Server]:
        return [self]

    def getsockname(self) -> tuple[str, int]:
        return self.host, self.port

    def close(self) -> None:
        self._network.close_server(self)

    async def wait_closed(self) -> None:
        """At once."""


class BoundSocket:
    """As `socket.socket`, of which only the address counts."""

    family = socket.AF_INET
    _ports = itertools.count(50_000)

    def __init__(self, *_: Any) -> None:
        self._address = "", 0

    def setsockopt(self, *_: Any) -> None:
        """Nothing depends on it."""

    def bind(self, address: tuple[str, int]) -> None:
        host, port = address
        self._address = host, port or next(self._ports)

    def getsockname(self) -> tuple[str, int]:
        return self._address

    def close(self) -> None:
        """It was never open."""


def bind(host: str, port: int) -> list[Any]:
    bound = BoundSocket()
    bound.bind((host, port))
    return [bound]


class Sockets:
    """What stands in for the module `socket` where one is bound before it is listened on."""

    SOCK_STREAM = socket.SOCK_STREAM
    AI_PASSIVE = socket.AI_PASSIVE
    SOL_SOCKET = socket.SOL_SOCKET
    SO_REUSEADDR = socket.SO_REUSEADDR
    SO_KEEPALIVE = socket.SO_KEEPALIVE
    socket = BoundSocket


class Transport(asyncio.Transport):
    """One end of a connection. Its writes arrive at the other end in order, after a delay, unless lost."""

    peer: Transport

    def __init__(
        self,
        network: Network,
        context: contextvars.Context,
        party: Party,
        sockname: tuple[str, int],
        peername: tuple[str, int],
    ) -> None:
        super().__init__({"sockname": sockname, "peername": peername})
        self.party = party
        self.sockname = sockname
        self.peername = peername
        self._network = network
        self._loop = network.loop
        self._context = context
        self._out = network.link(sockname[0], peername[0])
        self._in = network.link(peername[0], sockname[0])
        self._protocol: Any = None
        self._arriving: deque[bytes | None] = deque()
        """Data from the peer not yet given to the protocol; None is the end."""
        self._arrives_at: deque[float] = deque()
        self._last_arrival = 0.0
        self._sent_s = 0.0
        self._is_closing = False
        self._is_lost = False
        self._is_reading = True
        self._is_coming = False
        self._unsent = 0
        self._is_writing_paused = False

    def begin(self, protocol: Any, *, at_once: bool) -> None:
        self._protocol = protocol
        self._soon(protocol.connection_made, self) if at_once else protocol.connection_made(self)
        self._is_buffered = isinstance(protocol, asyncio.BufferedProtocol)
        self._soon(self.arrive_soon)

    def _soon(self, what: Callable[..., Any], *args: Any) -> None:
        self._loop.call_soon(what, *args, context=self._context)

    # Writing

    def write(self, data: Any) -> None:
        if self._is_closing or self._is_lost or not data:
            return
        self._unsent += len(data)
        self.peer._take(bytes(data))
        if self._unsent > _HIGH_WATER and not self._is_writing_paused:
            self._is_writing_paused = True
            self._protocol.pause_writing()

    def writelines(self, buffers: Any) -> None:
        self.write(b"".join(buffers))

    def get_write_buffer_size(self) -> int:
        return self._unsent if self._unsent > _HIGH_WATER or self._out.is_cut else 0

    def _passed(self, size: int) -> None:
        self._unsent -= size
        if self._is_writing_paused and self._unsent < _HIGH_WATER // 4 and not self._is_lost:
            self._is_writing_paused = False
            self._soon(self._resume_writing)

    def _resume_writing(self) -> None:
        if not self._is_lost:
            self._protocol.resume_writing()

    def can_write_eof(self) -> bool:
        return False

    def is_closing(self) -> bool:
        return self._is_closing or self._is_lost

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            if not self._is_lost:
                self.peer._take(None)
                self._soon(self._lose, None)

    def abort(self) -> None:
        self._is_closing = True
        if not self._is_lost:
            self.peer._take(None)
            self._soon(self._lose, None)

    # Reading

    def _take(self, data: bytes | None) -> None:
        if self._is_lost:
            return
        now = self._loop.now_s
        if now >= self._sent_s + PACKET_S:
            self._sent_s = now
            self._last_arrival = max(self._last_arrival, now + self._in.delay_s(self._network.chance))
        self._arriving.append(data)
        self._arrives_at.append(self._last_arrival)
        if len(self._arriving) == 1:
            self.arrive_soon()

    def arrive_soon(self) -> None:
        if self._arriving and not self._is_coming and self._protocol is not None and not self._is_lost:
            self._is_coming = True
            self._loop.call_at(max(self._arrives_at[0], self._loop.now_s), self._arrive, context=_NOBODYS)

    def _arrive(self) -> None:
        """In the context of no party: the network does not stop with a process."""
        self._is_coming = False
        if self._in.is_cut:
            self._in.stalled.append(self)
        elif self._arriving and self._is_reading and not self.party.is_dead:
            if self.party.is_paused:
                self._is_coming = True
                self._soon(self._receive)
            else:
                self._context.run(self._receive)

    def _receive(self) -> None:
        self._is_coming = False
        now = self._loop.now_s
        while self._arriving and self._arrives_at[0] <= now and self._is_reading and not self._is_lost:
            data = self._arriving.popleft()
            self._arrives_at.popleft()
            if data is None:
                if self._protocol.eof_received():
                    continue
                self.close()
                return
            self._loop.note(self.peername, self.sockname, len(data))
            self.peer._passed(len(data))
            self._give(data)
        self.arrive_soon()

    def _give(self, data: bytes) -> None:
        if not self._is_buffered:
            self._protocol.data_received(data)
            return
        position = 0
        while position < len(data) and not self._is_lost:
            buffer = self._protocol.get_buffer(len(data) - position)
            size = min(len(buffer), len(data) - position)
            buffer[:size] = data[position : position + size]
            position += size
            self._protocol.buffer_updated(size)

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self.arrive_soon()

    def is_reading(self) -> bool:
        return self._is_reading

    # The end

    def _lose(self, why: Exception | None) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._network.drop(self)
            if self._protocol is not None:
                self._protocol.connection_lost(why)

    def lose_soon(self, why: Exception | None) -> None:
        self._loop.call_later(
            self._network.delay_s(self.peername[0], self.sockname[0]), self._lose, why, context=self._context
        )

    def break_off(self) -> None:
        """Break the connection: both ends are notified, and data in flight is lost."""
        for end in (self, self.peer):
            end._arriving.clear()
            end._arrives_at.clear()
            end.lose_soon(ConnectionResetError(104, "reset"))

    def die(self, *, tells_peer: bool) -> None:
        self._is_lost = True
        self._network.drop(self)
        if tells_peer and not self.peer._is_lost:
            self.peer.lose_soon(ConnectionResetError(104, "reset"))
