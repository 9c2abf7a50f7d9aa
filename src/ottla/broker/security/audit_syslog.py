"""The syslog target of the audit log: datagrams, sent without blocking."""

from __future__ import annotations

import logging
import os
import socket
from datetime import UTC, datetime
from typing import Final

from ottla.core.errors import ConfigError

_logger: Final = logging.getLogger(__name__)

_PRIORITY: Final = 10 << 3 | 5
"""Facility authpriv, severity notice."""
_PORT: Final = 514
_RETRY_S: Final = 5.0


class AuditSyslog:
    """Sends to `/dev/log` or another socket file, or to HOST:PORT over UDP (RFC 5424)."""

    name = "syslog"

    def __init__(self, where: str) -> None:
        self.dropped = 0
        self._where = where
        self._is_local = where.startswith("/")
        self._to: str | tuple[str, int] = where if self._is_local else _resolved(where)
        self._host = socket.gethostname() or "-"
        self._socket: socket.socket | None = None
        self._next_try_s = 0.0

    def write(self, line: bytes, now_s: float) -> None:
        """Send a line; counted as dropped if it cannot be sent at once."""
        try:
            self._connected(now_s).send(self._head(now_s) + line)
        except OSError as failed:
            if self.dropped == 0:
                _logger.error("could not send the audit log to syslog at %s: %s", self._where, failed.strerror)
            self.dropped += 1
            if not isinstance(failed, BlockingIOError):
                self._disconnect(now_s)

    def close(self) -> None:
        self._disconnect(0.0)

    def _head(self, now_s: float) -> bytes:
        if self._is_local:
            return f"<{_PRIORITY}>ottla-audit[{os.getpid()}]: ".encode()
        when = datetime.fromtimestamp(now_s, UTC).isoformat(timespec="milliseconds")
        return f"<{_PRIORITY}>1 {when} {self._host} ottla {os.getpid()} audit - ".encode()

    def _connected(self, now_s: float) -> socket.socket:
        if self._socket is None:
            if now_s < self._next_try_s:
                raise BlockingIOError(0, "not connected")
            family = socket.AF_UNIX if self._is_local else _family(self._to[0])
            self._socket = socket.socket(family, socket.SOCK_DGRAM)
            self._socket.setblocking(False)  # noqa: FBT003 - as it is declared
            self._socket.connect(self._to)
        return self._socket

    def _disconnect(self, now_s: float) -> None:
        self._next_try_s = now_s + _RETRY_S
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _resolved(where: str) -> tuple[str, int]:
    """Resolved once, at the start: name resolution may take seconds."""
    host, _, port = where.rpartition(":") if ":" in where else (where, "", str(_PORT))
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)
    except (OSError, ValueError) as failed:
        wrong = f"security.audit_syslog must be a socket file or HOST:PORT, got {where!r}: {failed}"
        raise ConfigError(wrong) from None
    address = found[0][4]
    return str(address[0]), int(address[1])
