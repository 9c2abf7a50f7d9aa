"""Which partition a key belongs to, as every Kafka client decides it: MurmurHash2, 32 bits, with Kafka's seed.

Compiled by Cython with the C types in murmur2.pxd where a C compiler was at hand, otherwise run as it stands.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from ottla.records.uncompiled import cython  # type: ignore[no-redef]

_SEED = cython.declare(cython.uint, 0x9747B28C)
_MIX = cython.declare(cython.uint, 0x5BD1E995)
_32_BITS = cython.declare(cython.uint, 0xFFFFFFFF)  # C needs no mask, and Python does


def hash_of(data: cython.p_const_uchar, length: cython.Py_ssize_t) -> cython.uint:
    at: cython.Py_ssize_t = 0
    word: cython.uint
    mixed: cython.uint = _SEED ^ (length & _32_BITS)
    while length - at >= 4:
        word = data[at] | data[at + 1] << 8 | data[at + 2] << 16 | cython.cast(cython.uint, data[at + 3]) << 24
        word = word * _MIX & _32_BITS
        word = (word ^ word >> 24) * _MIX & _32_BITS
        mixed = mixed * _MIX & _32_BITS ^ word
        at += 4
    if at < length:
        if length - at == 3:
            mixed ^= data[at + 2] << 16
        if length - at >= 2:
            mixed ^= data[at + 1] << 8
        mixed = (mixed ^ data[at]) * _MIX & _32_BITS
    mixed = (mixed ^ mixed >> 13) * _MIX & _32_BITS
    return mixed ^ mixed >> 15


def murmur2(key: bytes) -> int:
    return hash_of(key, len(key))


def partition_of(key: bytes, partitions: cython.int) -> cython.int:
    """The partition of a key that is not null, among so many."""
    if partitions <= 0:
        raise ValueError(f"a topic of {partitions} partitions has none for a key")
    return (hash_of(key, len(key)) & 0x7FFFFFFF) % partitions
