"""What is counted of HTTP."""

from __future__ import annotations

from collections import Counter

from ottla.broker.metrics import Histogram


class HttpStats:
    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        """By method, route and status."""
        self.times = Histogram()
        self.loop_delays = Histogram()
        """How late the event loop was, looked at ten times a second."""
        self.refused_connections = 0
        """Those that spoke no HTTP, or were too slow at it."""
        self.skipped_messages = 0
        """Those that tails were told they missed."""
