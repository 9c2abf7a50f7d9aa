"""When a broker's task sends what it has collected: with enough company, or after a while without it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BundleRule:
    """One request for many partitions, and no partition waits long for the others."""

    min_requests: int
    max_wait_s: float

    def send_at(self, collected: int, attached: int, first_at: float) -> float:
        """The time from which to send, given when the first was collected.

        `attached` counts the partitions that could still come to be collected, and those that were: waiting for
        more than all of them would be waiting for nobody.
        """
        if collected >= min(self.min_requests, attached):
            return first_at
        return first_at + self.max_wait_s
