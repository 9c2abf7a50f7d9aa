"""The audit log: a line of JSON for each login, denial and administrative change, and optionally for reads."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol

from ottla.broker.security.audit_writer import AuditWriter
from ottla.net.rates import Bucket

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from ottla.broker.requests.context import Client, Context
    from ottla.broker.security.audit_chain import Chain

_MOST_NAMES: Final = 100
_MOST_DENIED: Final = 20
_LONGEST: Final = 256
_LINES_PER_S: Final = 100
_MOST_ADDRESSES: Final = 10_000
_READ_AGAIN_S: Final = 300.0
_MOST_READERS: Final = 10_000


class Target(Protocol):
    """A destination of audit lines. It never blocks, and counts dropped lines."""

    name: str

    @property
    def dropped(self) -> int: ...

    def write(self, line: bytes, now_s: float) -> None: ...

    def close(self) -> None: ...


class Audit:
    def __init__(
        self,
        targets: Sequence[Target],
        chain: Chain,
        node_id: int = 0,
        stop: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.targets = targets
        self.counts: Counter[str] = Counter()
        """Lines written, by event."""
        self._chain = chain
        self._node_id = node_id
        self._stop = stop
        self._readers: dict[tuple[str, str, str], float] = {}
        self._buckets: dict[str, Bucket] = {}
        self._untold: dict[str, int] = {}
        self.suppressed = 0
        """Lines suppressed by the rate limit per address."""

    def denied(self, context: Context, operation: str, resource: str, names: Sequence[str]) -> None:
        """Record that a client was denied this operation on these resources."""
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
        """Record an administrative request that was answered."""
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
        """Record an administrative change that is not a single Kafka request."""
        about: dict[str, object] = {"api": action, "names": [_cut(name) for name in names[:_MOST_NAMES]]}
        self._write("change", client.principal, f"{client.peer[0]}:{client.peer[1]}", about)

    def logged_in(self, mechanism: str, principal: str, peer: str) -> None:
        self._write_limited("login", principal, peer, {"mechanism": mechanism})

    def login_failed(self, mechanism: str, peer: str, reason: str) -> None:
        self._write_limited("login failed", None, peer, {"mechanism": mechanism, "reason": _cut(reason)})

    def read(self, context: Context, topics: Iterable[str]) -> None:
        """Record that a client fetched from these topics: one line per topic every five minutes, not one per fetch."""
        client, now_s = context.connection, time.monotonic()
        new = []
        for topic in topics:
            key = client.principal, client.peer[0], topic
            if now_s >= self._readers.get(key, 0.0):
                if len(self._readers) >= _MOST_READERS:
                    self._readers.clear()
                self._readers[key] = now_s + _READ_AGAIN_S
                new.append(topic)
        if new:
            about: dict[str, object] = {"api": context.header.api.name, "names": new[:_MOST_NAMES]}
            self._write_limited("read", client.principal, context.peer, about)

    async def stop(self) -> None:
        """Write queued lines before the broker stops."""
        if self._stop is not None:
            await self._stop()

    @property
    def waiting(self) -> int:
        """The number of lines that are not in the file yet."""
        return sum(target.waiting for target in self.targets if isinstance(target, AuditWriter))

    def flush(self) -> None:
        """Wait until the file has all lines; blocks."""
        for target in self.targets:
            if isinstance(target, AuditWriter):
                target.flush()

    def close(self) -> None:
        for target in self.targets:
            target.close()

    def _write_limited(self, event: str, principal: str | None, peer: str, about: dict[str, object]) -> None:
        """Write events that any client can cause, rate-limited per address; suppressed lines are counted."""
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
        now_s = time.time()
        now = datetime.fromtimestamp(now_s, UTC).isoformat(timespec="milliseconds")
        fields = {"time": now, "event": event, "principal": principal and _cut(principal), "peer": peer, **about}
        # JSON escapes control characters, so a name cannot start a new line.
        line = self._chain.link({**fields, "node": self._node_id})
        self.counts[event] += 1
        for target in self.targets:
            target.write(line, now_s)


def _cut(text: str) -> str:
    """Truncate long text to its beginning and its length: a client may send a name of 30 kilobytes."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"
