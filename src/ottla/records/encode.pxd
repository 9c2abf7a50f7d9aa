# C types for encode.py.
from libc.stdint cimport int64_t
cimport cython


@cython.final
cdef class BatchBuilder:
    cdef readonly int compression
    cdef readonly object compression_level
    cdef readonly int64_t max_bytes
    cdef readonly Py_ssize_t size
    cdef readonly int count
    cdef readonly int64_t base_timestamp
    cdef readonly int64_t max_timestamp
    cdef bytearray _buffer

    cdef bint put(self, long long timestamp, object key, object value, object headers) except -1
    cdef bint write(
        self,
        long long timestamp,
        const unsigned char* key,
        Py_ssize_t key_length,
        const unsigned char* value,
        Py_ssize_t value_length,
        bytes header_bytes,
        int header_count,
    ) except -1
    cdef int64_t _timestamp_delta(self, long long timestamp) except? -3
    cdef bint _make_room(self, bytearray buffer, long long length) except -1


cdef bytes encode_headers(object headers)
