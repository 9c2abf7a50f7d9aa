# C types for key_offsets.py. The comment on each field is its documentation in both forms.
from cpython.buffer cimport Py_buffer

cimport cython

@cython.final
cdef class KeyOffsets:
    cdef readonly long long max_bytes
    cdef readonly long long count
    # The size of the keys and their offsets.
    cdef readonly long long used

    # An open-addressed table of positions in the arena, 0 for empty; at position - 1: an offset, the
    # key's length, the key.
    cdef unsigned long long* slots
    cdef unsigned long long slot_mask
    cdef long long most_keys
    cdef unsigned char* arena
    cdef long long arena_bytes
    # The hash is keyed, so that clients cannot choose colliding keys.
    cdef unsigned long long secret_low
    cdef unsigned long long secret_high

    # Buffers for decompression and output, reused for each batch: new memory would be zeroed first while
    # holding the GIL, which delays requests.
    cdef bytearray reading
    cdef bytearray writing

    cdef long long find(self, const unsigned char* key, Py_ssize_t length) noexcept nogil
    cdef bint put(self, const unsigned char* key, Py_ssize_t length, long long offset) noexcept nogil

@cython.final
cdef class RecordWalk:
    cdef Py_buffer view
    cdef bint is_held
    cdef const unsigned char* data
    cdef Py_ssize_t end
    cdef Py_ssize_t next_at
    cdef bint is_broken

    # The last record read, without its length prefix.
    cdef Py_ssize_t at
    cdef Py_ssize_t record_at
    cdef Py_ssize_t record_end
    cdef Py_ssize_t offset_delta_at
    cdef long long timestamp_delta
    cdef long long offset_delta
    cdef Py_ssize_t key_at
    cdef long long key_length
    cdef long long value_length

    cdef long long varint(self) noexcept nogil
    cdef bint next(self) noexcept nogil
    cdef int check(self) except -1

cdef class RecordCopy:
    cdef unsigned char* data
    cdef Py_ssize_t at

    cdef int put_varint(self, long long value) noexcept nogil
    cdef int put_bytes(self, const unsigned char* source, Py_ssize_t size) noexcept nogil
