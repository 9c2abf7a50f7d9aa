"""The topics as seen by the group rules."""

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
    """The racks of each partition's replicas, if known."""


class TopicView(Protocol):
    """The current topics."""

    @property
    def version(self) -> int:
        """Changes with every change of the topics."""

    def by_name(self, name: str) -> TopicInfo | None: ...
    def by_id(self, topic_id: bytes) -> TopicInfo | None: ...
    def names(self) -> Iterable[str]:
        """All topics except internal ones, which expressions do not match."""


def hash_of(topics: Iterable[TopicInfo]) -> int:
    """A hash of these topics, their partition counts and racks; 0 for none.

    It is stored with a group, so that a new coordinator knows whether anything changed meanwhile.
    Kafka stores a different hash: a group moved between them is rebalanced once without changes.
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
