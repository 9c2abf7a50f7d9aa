"""The partition of a key, as in every Kafka client: MurmurHash2, 32 bits, with Kafka's seed.

Compiled by Cython with the C types in murmur2.pxd if a C compiler is available, otherwise run as plain Python.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from ottla.records.uncompiled import cython  # type: ignore[no-redef]

_SEED = cython.declare(cython.uint, 0x9747B28C)
_MIX = cython.declare(cython.uint, 0x5BD1E995)
_32_BITS = cython.declare(cython.uint, 0xFFFFFFFF)  # only Python needs the mask


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
    """The partition of a non-null key."""
    if partitions <= 0:
        raise ValueError(f"the number of partitions must be positive, got {partitions}")
    return (hash_of(key, len(key)) & 0x7FFFFFFF) % partitions
