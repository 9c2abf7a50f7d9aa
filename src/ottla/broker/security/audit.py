"""The audit log: a line of JSON for each operation that was denied, each login that failed, each change."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ottla.broker.context import Context

_MODE: Final = 0o600
_MOST_NAMES: Final = 100


class Audit:
    """Written as it happens. Whoever moves the file away finds that a new one is begun."""

    def __init__(self, path: Path) -> None:
        path.touch(_MODE)
        self._file = WatchedFileHandler(path, encoding="utf-8")

    def denied(self, context: Context, operation: str, resource: str, name: str) -> None:
        """Somebody wanted to do what they may not."""
        about: dict[str, object] = {
            "api": context.header.api.name,
            "operation": operation,
            "resource": resource,
            "name": name,
        }
        self._write("denied", context.connection.principal, context.peer, about)

    def changed(self, context: Context, names: Sequence[str], errors: Sequence[str]) -> None:
        """An administrative request was answered."""
        about: dict[str, object] = {"api": context.header.api.name, "names": list(names[:_MOST_NAMES])}
        if errors:
            about["errors"] = list(errors)
        self._write("change", context.connection.principal, context.peer, about)

    def login_failed(self, mechanism: str, peer: str, reason: str) -> None:
        self._write("login failed", None, peer, {"mechanism": mechanism, "reason": reason})

    def close(self) -> None:
        self._file.close()

    def _write(self, event: str, principal: str | None, peer: str, about: dict[str, object]) -> None:
        now = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")
        line = {"time": now, "event": event, "principal": principal, "peer": peer, **about}
        # JSON has an escape for every control character, so a name cannot begin a line of its own.
        text = msgspec.json.encode(line).decode()
        self._file.handle(logging.makeLogRecord({"msg": text}))
