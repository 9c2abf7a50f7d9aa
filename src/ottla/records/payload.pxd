# C types for payload.py. The comment on each field is its documentation in both forms.
from cpython.buffer cimport Py_buffer
from libc.stdint cimport int64_t
cimport cython


@cython.final
cdef class Payload:
    cdef Py_buffer view
    cdef bint is_held
    cdef const unsigned char* data
    cdef Py_ssize_t end

    # `at` moves while a record is read and is committed only when the record is finished: an error
    # is raised again on the next call.
    cdef Py_ssize_t at
    cdef Py_ssize_t next_at
    cdef int records_left
    cdef int64_t base_offset
    cdef int64_t last_offset_delta
    cdef int64_t base_timestamp
    cdef int64_t append_timestamp
    cdef bint is_log_append_time

    # The last record read: positions and lengths, so that no object is created.
    cdef int64_t offset
    cdef int64_t timestamp
    cdef Py_ssize_t record_end
    cdef Py_ssize_t key_at
    cdef Py_ssize_t key_length
    cdef Py_ssize_t value_at
    cdef Py_ssize_t value_length
    cdef int64_t header_count

    cdef int64_t long_varint(self, int max_bits) except? -3
    cdef inline int64_t varint(self, int max_bits) except? -3
    cdef inline Py_ssize_t skip_bytes(self) except? -2
    cdef int refuse_length(self, long long length) except -1
    cdef Py_ssize_t skip_name(self) except? -2
    cdef int next_record(self) except -1
    cdef int finish_record(self) except -1
    cdef int finish(self) except -1
    cdef object cut(self, Py_ssize_t at, Py_ssize_t length)
    cdef str text(self, Py_ssize_t at, Py_ssize_t length)
    cdef tuple header(self)
