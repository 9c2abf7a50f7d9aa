"""The audit log: a line of JSON for each operation that was denied, each login that failed, each change."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from typing import TYPE_CHECKING, Final

import msgspec

from ottla.net.rates import Bucket

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ottla.broker.context import Client, Context

_MODE: Final = 0o600
_MOST_NAMES: Final = 100
_MOST_DENIED: Final = 20
_LONGEST: Final = 256
_LINES_PER_S: Final = 100
_MOST_ADDRESSES: Final = 10_000


class Audit:
    """Written as it happens. Whoever moves the file away finds that a new one is begun."""

    def __init__(self, path: Path) -> None:
        path.touch(_MODE)
        self._file = WatchedFileHandler(path, encoding="utf-8")
        self._buckets: dict[str, Bucket] = {}
        self._untold: dict[str, int] = {}
        self.suppressed = 0
        """Lines that were not written, because an address caused too many."""

    def denied(self, context: Context, operation: str, resource: str, names: Sequence[str]) -> None:
        """A request asked for this operation on resources that the client may not do it to."""
        about: dict[str, object] = {
            "api": context.header.api.name,
            "operation": operation,
            "resource": resource,
            "name": _cut(names[0]),
        }
        if len(names) > 1:
            about |= {"names": [_cut(name) for name in names[:_MOST_DENIED]], "count": len(names)}
        self._write_limited("denied", context.connection.principal, context.peer, about)

    def changed(self, context: Context, names: Sequence[str], errors: Sequence[str]) -> None:
        """An administrative request was answered."""
        about: dict[str, object] = {
            "api": context.header.api.name,
            "names": [_cut(name) for name in names[:_MOST_NAMES]],
        }
        if len(names) > _MOST_NAMES:
            about["count"] = len(names)
        if errors:
            about["errors"] = list(errors[:_MOST_NAMES])
        self._write("change", context.connection.principal, context.peer, about)

    def noted(self, client: Client, action: str, names: Sequence[str]) -> None:
        """An administrative change that is not one request of Kafka's."""
        about: dict[str, object] = {"api": action, "names": [_cut(name) for name in names[:_MOST_NAMES]]}
        self._write("change", client.principal, f"{client.peer[0]}:{client.peer[1]}", about)

    def logged_in(self, mechanism: str, principal: str, peer: str) -> None:
        self._write_limited("login", principal, peer, {"mechanism": mechanism})

    def login_failed(self, mechanism: str, peer: str, reason: str) -> None:
        self._write_limited("login failed", None, peer, {"mechanism": mechanism, "reason": _cut(reason)})

    def close(self) -> None:
        self._file.close()

    def _write_limited(self, event: str, principal: str | None, peer: str, about: dict[str, object]) -> None:
        """For what any client can cause: of each address so many lines in a second; the rest is counted."""
        host = peer.rpartition(":")[0]
        if len(self._buckets) >= _MOST_ADDRESSES:
            self._buckets.clear()
        bucket = self._buckets.setdefault(host, Bucket())
        if not bucket.admits(_LINES_PER_S, time.monotonic()):
            self.suppressed += 1
            self._untold[host] = self._untold.get(host, 0) + 1
            return
        if (untold := self._untold.pop(host, 0)) > 0:
            self._write("suppressed", None, peer, {"count": untold})
        self._write(event, principal, peer, about)

    def _write(self, event: str, principal: str | None, peer: str, about: dict[str, object]) -> None:
        now = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")
        line = {"time": now, "event": event, "principal": principal and _cut(principal), "peer": peer, **about}
        # JSON has an escape for every control character, so a name cannot begin a line of its own.
        text = msgspec.json.encode(line).decode()
        self._file.handle(logging.makeLogRecord({"msg": text}))


def _cut(text: str) -> str:
    """The text, or its beginning and how much is missing: a client may send a name of 30 kilobytes."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"
