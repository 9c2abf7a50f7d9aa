"""The cluster-wide state of an exposed topic."""

from __future__ import annotations

import msgspec

from ottla.broker.interfaces.protocol_servers import Exposed, ShardAddress
from ottla.core.security import ANONYMOUS


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    topic_id: str
    ports: list[int] = []
    """Preferred ports of the shards; the serving node uses others if these are taken."""
    principal: str = ANONYMOUS
    node: int = -1
    """The serving node: the leader of the first partition, once it serves."""
    is_tls: bool = False
    endpoints: list[str] = []
    """`host:port` of each shard."""
    http: str = ""
    """The HTTP address where its consumers register."""

    @property
    def serving_key(self) -> tuple[str, tuple[int, ...], str]:
        return self.topic_id, tuple(self.ports), self.principal

    def described(self, topic: str) -> Exposed:
        """The description by a node that does not serve the topic, and does not know its consumers."""
        places = []
        for shard, endpoint in enumerate(self.endpoints):
            host, _, port = endpoint.rpartition(":")
            places.append(ShardAddress(shard, host, int(port)))
        return Exposed(topic, self.is_tls, tuple(places), {})


def read_shared(data: bytes) -> Shared:
    return msgspec.json.decode(data, type=Shared)
