"""The only part of the consumer protocol that a broker parses: the subscribed topics.

A subscription of Kafka's "consumer" protocol is a version and then, in every version, a list of topic names.
The rest is opaque.
"""

from __future__ import annotations

from struct import Struct, error
from typing import Final

CONSUMER_PROTOCOL: Final = "consumer"

_HEAD: Final = Struct(">hi")
_LENGTH: Final = Struct(">h")


def topics_in(subscription: bytes) -> frozenset[str] | None:
    """The topics, or None if these bytes are not a subscription."""
    try:
        version, count = _HEAD.unpack_from(subscription)
        if version < 0 or count < 0:
            return None
        position = _HEAD.size
        topics = set()
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(subscription, position)
            position += _LENGTH.size
            name = subscription[position : position + length]
            if length < 0 or len(name) < length:
                return None
            topics.add(name.decode())
            position += length
    except (error, UnicodeDecodeError):
        return None
    return frozenset(topics)
