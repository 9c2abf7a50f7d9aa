"""A client's connection to one shard: blocking, kept open, reopened after idling."""

from __future__ import annotations

import select
import socket
import time
from typing import TYPE_CHECKING, Final

from ottla.dmqp.errors import NotReached
from ottla.dmqp.frame import HEADER, HEADER_BYTES, MAX_PAYLOAD_BYTES, Frame, Method, encode

if TYPE_CHECKING:
    import ssl

    from ottla.core.ids import Address

_IDLE_SHARE: Final = 0.8
"""Fraction of the idle timeout: the outcome of a push into a closed connection would be unknown."""


class ShardLink:
    def __init__(self, address: Address, timeout_s: float, tls: ssl.SSLContext | None = None) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._tls = tls
        self._socket: socket.socket | None = None
        self._used_at_s = 0.0

    def ask(self, method: Method, sequence_id: int = 0, payload: bytes = b"") -> Frame:
        self.send(method, sequence_id, payload)
        return self.receive()

    def send(self, method: Method, sequence_id: int = 0, payload: bytes = b"") -> None:
        """Send without waiting, once connected: `receive` returns the replies in this order."""
        if self._socket is None:
            raise NotReached(f"the shard at {self.address} is not connected")
        try:
            self._socket.sendall(encode(sequence_id, method, 0, payload))
        except OSError as failed:
            raise self._lost(failed) from None
        self._used_at_s = time.monotonic()

    def receive(self) -> Frame:
        sequence_id, length, method, status = HEADER.unpack(self._read(HEADER_BYTES))
        if method != Method.RESPONSE or length > MAX_PAYLOAD_BYTES:
            self.close()
            raise NotReached(f"{self.address} does not speak DMQP")
        return Frame(sequence_id, method, status, self._read(length))

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def connect(self) -> None:
        """Ensure a connection to a live server, as far as that can be detected."""
        if self._socket is not None and self._is_stale(self._socket):
            self.close()
        if self._socket is None:
            try:
                plain = socket.create_connection(self.address, self._timeout_s)
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                tls = self._tls
                self._socket = plain if tls is None else tls.wrap_socket(plain, server_hostname=self.address.host)
            except OSError as failed:
                raise self._lost(failed) from None
            self._used_at_s = time.monotonic()

    def _is_stale(self, connected: socket.socket) -> bool:
        """Whether the server may be about to close it for idleness, or has closed it."""
        if time.monotonic() - self._used_at_s > _IDLE_SHARE * self._timeout_s:
            return True
        # Nothing was sent, so only EOF can arrive.
        return _is_readable(connected)

    def _read(self, size: int) -> bytes:
        content = bytearray()
        while len(content) < size:
            if self._socket is None:
                raise NotReached(f"no request was sent to {self.address}")
            try:
                piece = self._socket.recv(size - len(content))
            except OSError as failed:
                raise self._lost(failed) from None
            if not piece:
                raise self._lost(None)
            content += piece
        return bytes(content)

    def _lost(self, failed: OSError | None) -> NotReached:
        self.close()
        reason = "it closed the connection" if failed is None else failed.strerror or str(failed)
        return NotReached(f"the shard at {self.address}: {reason}")


def _is_readable(connected: socket.socket) -> bool:
    if not hasattr(select, "poll"):
        return bool(select.select([connected], [], [], 0)[0])
    # Unlike `select`, poll supports descriptors above 1023.
    poll = select.poll()
    poll.register(connected, select.POLLIN)
    return bool(poll.poll(0))
