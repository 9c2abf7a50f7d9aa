# SipHash-1-3, as used by Python for bytes. There is no .py module: without a C compiler, a dictionary hashes the keys.
from libc.string cimport memcpy


cdef inline unsigned long long _rotate(unsigned long long word, int bits) noexcept nogil:
    return (word << bits) | (word >> (64 - bits))


cdef inline unsigned long long siphash(
    unsigned long long low, unsigned long long high, const unsigned char* data, Py_ssize_t length
) noexcept nogil:
    """The hash of these bytes, keyed by 128 secret bits."""
    cdef unsigned long long v0 = low ^ 0x736F6D6570736575ULL
    cdef unsigned long long v1 = high ^ 0x646F72616E646F6DULL
    cdef unsigned long long v2 = low ^ 0x6C7967656E657261ULL
    cdef unsigned long long v3 = high ^ 0x7465646279746573ULL
    cdef unsigned long long word = 0
    cdef Py_ssize_t at = 0
    cdef int rounds = 1
    cdef int step = 0
    while step < 2:
        if length - at >= 8:
            memcpy(&word, data + at, 8)
            at += 8
        elif step == 0:
            word = (<unsigned long long>length) << 56
            memcpy(&word, data + at, length - at)
            step = 1
        else:
            word = 0
            v2 ^= 0xFF
            rounds = 3
            step = 2
        v3 ^= word
        while rounds > 0:
            v0 += v1
            v2 += v3
            v1 = _rotate(v1, 13) ^ v0
            v3 = _rotate(v3, 16) ^ v2
            v0 = _rotate(v0, 32)
            v2 += v1
            v0 += v3
            v1 = _rotate(v1, 17) ^ v2
            v3 = _rotate(v3, 21) ^ v0
            v2 = _rotate(v2, 32)
            rounds -= 1
        rounds = 1
        v0 ^= word
    return v0 ^ v1 ^ v2 ^ v3
