"""What group rules know of topics."""

from __future__ import annotations

import json
from hashlib import blake2b
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

_LENGTHS: Final = Struct(">iH")


class TopicInfo(NamedTuple):
    id: bytes
    name: str
    partitions: int
    racks: tuple[tuple[str, ...], ...] = ()
    """Of each partition's replicas, where they are known."""


class TopicView(Protocol):
    """The topics of the moment."""

    @property
    def version(self) -> int:
        """Another one after every change."""

    def by_name(self, name: str) -> TopicInfo | None: ...
    def by_id(self, topic_id: bytes) -> TopicInfo | None: ...
    def names(self) -> Iterable[str]:
        """All but the internal ones, which no pattern is meant for."""


def hash_of(topics: Iterable[TopicInfo]) -> int:
    """A number that is another one once these topics are others, have more partitions or other racks; 0 for none.

    It is stored with a group, so that a broker that takes the group over knows whether anything changed meanwhile.
    Kafka stores another hash: what one of them wrote is news to the other, and costs a rebalance without changes.
    """
    known = sorted(topics)
    if not known:
        return 0
    digest = blake2b(digest_size=8)
    for topic in known:
        name = topic.name.encode()
        digest.update(topic.id + _LENGTHS.pack(topic.partitions, len(name)) + name)
        if topic.racks:
            digest.update(json.dumps(topic.racks).encode())
    return int.from_bytes(digest.digest(), signed=True)
