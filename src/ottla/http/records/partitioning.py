"""Which partition a message goes to when nobody says: by its key, as Kafka's own producers do."""

from __future__ import annotations

from itertools import count
from typing import Final

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF
_SHIFT: Final = 24

_turns = count()


def murmur2(data: bytes) -> int:
    """MurmurHash2, 32 bits, with the seed that Kafka's producers use."""
    hashed = _SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> _SHIFT) * _MULTIPLIER & _MASK
        hashed = hashed * _MULTIPLIER & _MASK ^ word
    if rest := data[whole:]:
        hashed = (hashed ^ int.from_bytes(rest, "little")) * _MULTIPLIER & _MASK
    hashed = (hashed ^ hashed >> 13) * _MULTIPLIER & _MASK
    return hashed ^ hashed >> 15


def partition_of(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def next_partition(partitions: int) -> int:
    """For all messages of a request that have no key: one partition, and the next time another."""
    return next(_turns) % partitions
