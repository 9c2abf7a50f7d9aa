"""Limits of the number of partitions, and of automatic topic creation."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from ottla.core.errors import LeaderNotAvailable, PolicyViolation
from ottla.net.rates import Bucket

if TYPE_CHECKING:
    from ottla.broker.config import BrokerConfig
    from ottla.broker.topics import Topics


class TopicLimits:
    def __init__(self, config: BrokerConfig, topics: Topics) -> None:
        self._config = config
        self._topics = topics
        self._auto_created = Bucket()

    def check_room(self, more: int) -> None:
        """Raises PolicyViolation if this many more partitions exceed the limit; internal topics are exempt."""
        count = sum(len(state.partitions) for state in self._topics.by_name.values())
        most = self._config.max_partitions
        if count + more > most:
            raise PolicyViolation(f"{count + more} partitions would exceed broker.max_partitions ({most})")

    def check_auto_creation(self) -> None:
        """Raises if the rate limit of automatic topic creation is exceeded; the client retries."""
        rate = self._config.max_auto_created_topics_per_s
        if rate and not self._auto_created.admits(rate, monotonic()):
            raise LeaderNotAvailable(f"automatic topic creation is limited to {rate} per second")
