# cython: language_level=3, boundscheck=False, cdivision=True
"""Finds where the batches for a reader end in a segment file, by reading only their headers."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from posix.unistd cimport pread

from ottla.records.big_endian cimport get_int32, get_int64

cdef enum:
    HEADER_BYTES = 61
    # Small batches are read together, large ones skipped.
    WINDOW_BYTES = 16384
    LARGE_BYTES = 4096

cdef int64_t HIGHEST_BASE_OFFSET = 0x7FFFFFFF00000000


def find_end(int fd, int64_t position, int64_t size, int64_t from_offset, int64_t until_offset, int64_t max_bytes):
    """The position after the batches from `position` on, within these bounds, and the offset after them.

    The batches are those of `find_batches`. None if the first one is not the one with `from_offset`, or if anything is
    unusual: then they must be read.
    """
    cdef uint8_t[WINDOW_BYTES] window
    cdef int64_t base_offset, length, end
    cdef int64_t next_offset = -1
    cdef int64_t at = position
    cdef int64_t window_at = position
    cdef int64_t window_end = position
    cdef int64_t wanted = WINDOW_BYTES
    cdef uint8_t* header
    cdef ssize_t got
    cdef int32_t delta
    while at < size:
        if window_end - at < HEADER_BYTES:
            got = pread(fd, window, min(wanted, size - at), at)
            if got < HEADER_BYTES:
                return None
            window_at = at
            window_end = at + got
        header = window + (at - window_at)
        base_offset = get_int64(header, 0)
        length = get_int32(header, 8)
        delta = get_int32(header, 23)
        end = at + 12 + length
        if (header[16] != 2 or length < HEADER_BYTES - 12 or end > size or delta < 0 or get_int32(header, 57) < 0
                or base_offset < 0 or base_offset > HIGHEST_BASE_OFFSET):
            return None
        if at == position and base_offset + delta < from_offset:
            return None
        if base_offset >= until_offset or (end - position > max_bytes and at > position):
            break
        next_offset = base_offset + delta + 1
        wanted = HEADER_BYTES if length > LARGE_BYTES else WINDOW_BYTES
        at = end
    return None if next_offset < 0 else (at, next_offset)
