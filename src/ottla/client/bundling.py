"""Decides when a broker's task sends a request: with enough partitions, or after a delay."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BundleRule:
    """One request for many partitions, with a bounded delay for each."""

    min_requests: int
    max_wait_s: float

    def send_at(self, collected: int, attached: int, first_at: float) -> float:
        """The time to send, given when the first partition was added.

        `attached` is the number of partitions that are, or could still be, added: there is no point in waiting for
        more.
        """
        if collected >= min(self.min_requests, attached):
            return first_at
        return first_at + self.max_wait_s
