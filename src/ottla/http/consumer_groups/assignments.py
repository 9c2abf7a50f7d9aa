"""A consumer's assignment, in the format that group members use.

An assignment of Kafka's "consumer" protocol is a version, then topics with their partitions, then opaque
data.
"""

from __future__ import annotations

from struct import Struct, error
from typing import Final

_HEAD: Final = Struct(">hi")
_LENGTH: Final = Struct(">h")
_COUNT: Final = Struct(">i")


def partitions_in(assignment: bytes) -> dict[str, list[int]]:
    """Partitions by topic; empty if these bytes are not an assignment."""
    found: dict[str, list[int]] = {}
    try:
        _, topics = _HEAD.unpack_from(assignment)
        at = _HEAD.size
        for _ in range(topics):
            (length,) = _LENGTH.unpack_from(assignment, at)
            at += _LENGTH.size
            name = assignment[at : at + length].decode()
            at += length
            (count,) = _COUNT.unpack_from(assignment, at)
            at += _COUNT.size
            if not 0 <= count <= (len(assignment) - at) // _COUNT.size:
                return {}
            found[name] = [_COUNT.unpack_from(assignment, at + _COUNT.size * number)[0] for number in range(count)]
            at += _COUNT.size * count
    except (error, UnicodeDecodeError):
        return {}
    return found
