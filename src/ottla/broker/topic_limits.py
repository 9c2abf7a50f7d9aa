"""How many partitions there may be, and how fast clients create topics by asking for them."""

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
        """Whether there may be so many more partitions; internal topics are not refused."""
        count = sum(len(state.partitions) for state in self._topics.by_name.values())
        most = self._config.max_partitions
        if count + more > most:
            raise PolicyViolation(f"{more} more partitions would make {count + more}; broker.max_partitions is {most}")

    def check_auto_creation(self) -> None:
        """Whether another topic may be created because a client asked for it; it may ask again."""
        rate = self._config.max_auto_created_topics_per_s
        if rate and not self._auto_created.admits(rate, monotonic()):
            raise LeaderNotAvailable(f"more than {rate} topics would be created in a second")
