"""The partition of a message without an explicit one: by key, as Kafka's producers do."""

from __future__ import annotations

from itertools import count
from typing import Final

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF
_SHIFT: Final = 24

_turns = count()


def murmur2(data: bytes) -> int:
    """MurmurHash2, 32 bits, with the seed of Kafka's producers."""
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
    """The partition for all messages of a request without a key; another one for the next request."""
    return next(_turns) % partitions
