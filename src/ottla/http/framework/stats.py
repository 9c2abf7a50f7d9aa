"""HTTP counters."""

from __future__ import annotations

from collections import Counter

from ottla.broker.metrics import Histogram


class HttpStats:
    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        """The number of requests by method, route and status."""
        self.times = Histogram()
        self.loop_delays = Histogram()
        """Event loop lag, sampled ten times a second."""
        self.refused_connections = 0
        """The number of connections closed for invalid or too slow HTTP."""
        self.skipped_messages = 0
        """Messages that tails reported as skipped."""
