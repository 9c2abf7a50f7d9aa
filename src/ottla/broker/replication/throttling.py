"""Throttling of replicas that catch up, for reassignments. In-sync replicas are never throttled."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from ottla.cluster.replication.throttle import Throttle, is_listed, most_at_once

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.configs.topic_config import TopicConfig
    from ottla.broker.replication.replica import Replica

_LEADER_RATE: Final = "leader.replication.throttled.rate"
_FOLLOWER_RATE: Final = "follower.replication.throttled.rate"


class Throttling:
    """Throttles both directions: bytes sent as a leader, and bytes fetched as a follower."""

    def __init__(self, broker: Broker, node_id: int) -> None:
        self._broker = broker
        self._node_id = node_id
        self._sent = Throttle()
        self._fetched = Throttle()

    # Leading

    def wait_to_send_s(self, replica: Replica, follower: int) -> float:
        """How long to delay this follower's next bytes of this partition."""
        rate = self._leader_rate(replica, follower)
        return 0.0 if rate is None else self._sent.wait_s(rate, time.monotonic())

    def room(self, replica: Replica, follower: int, room: int) -> int:
        """How many of these bytes may be sent at once."""
        rate = self._leader_rate(replica, follower)
        return room if rate is None else most_at_once(room, rate)

    def sent(self, replica: Replica, follower: int, size: int) -> None:
        if size and (rate := self._leader_rate(replica, follower)) is not None:
            self._sent.took(size, rate, time.monotonic())

    def _leader_rate(self, replica: Replica, follower: int) -> float | None:
        if replica.leading is None or follower in replica.leading.isr:
            return None
        config = self._config(replica)
        if config is None or not is_listed(
            config.leader_replication_throttled_replicas, replica.key.partition, self._node_id
        ):
            return None
        return self._rate(_LEADER_RATE)

    # Following

    def wait_to_fetch_s(self, replica: Replica) -> float:
        rate = self.follower_rate(replica)
        return 0.0 if rate is None else self._fetched.wait_s(rate, time.monotonic())

    def fetched(self, replica: Replica, size: int) -> None:
        if size and (rate := self.follower_rate(replica)) is not None:
            self._fetched.took(size, rate, time.monotonic())

    def follower_rate(self, replica: Replica) -> float | None:
        """The rate limit in bytes per second; None for no limit."""
        if replica.state is None or self._node_id in replica.state.isr:
            return None
        config = self._config(replica)
        if config is None or not is_listed(
            config.follower_replication_throttled_replicas, replica.key.partition, self._node_id
        ):
            return None
        return self._rate(_FOLLOWER_RATE)

    # Settings

    def _config(self, replica: Replica) -> TopicConfig | None:
        topic = self._broker.topics.by_id.get(replica.key.topic_id.raw)
        return None if topic is None else topic.config

    def _rate(self, name: str) -> float | None:
        for _, texts in self._broker.configs.layers():
            if name in texts:
                return float(texts[name])
        return None
