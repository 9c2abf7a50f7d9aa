from libc.stdint cimport int64_t, uint8_t

from ottla.broker.fast_path.fetch_request cimport Part, Request
from ottla.broker.fast_path.fetch_session cimport SessionParts
from ottla.broker.fast_path.wire cimport Answers, Partitions


cdef enum Outcome:
    LEFT
    ANSWERED
    WAITS


cdef class WaitingFetch


cdef class FastFetch:
    cdef object stats
    cdef object held
    cdef int64_t most_bytes
    cdef Py_ssize_t max_frame_bytes
    cdef Partitions partitions
    cdef Answers answers
    cdef list found
    cdef list reads
    cdef list ranges
    cdef bint sends_files
    cdef bint is_again
    cdef SessionParts session
    cdef int64_t total
    cdef int64_t left
    cdef int64_t inline_left
    cdef int64_t range_bytes
    cdef Request request
    cdef WaitingFetch waiting

    cdef Py_ssize_t serve(self, uint8_t* data, Py_ssize_t count, bint sends_files) except -1
    cdef Outcome answer(self, uint8_t* frame, Py_ssize_t size, bint is_last) except *
    cdef Outcome answer_session(self, bint is_last) except *
    cdef uint8_t* put_session_topics(self, uint8_t* at, uint8_t* results, list news) except NULL
    cdef uint8_t* begin_response(self, Py_ssize_t room) except NULL
    cdef uint8_t* put_header(self, uint8_t* begin) noexcept
    cdef int end_response(self, uint8_t* begin, uint8_t* at) except -1
    cdef uint8_t* put_partition(self, uint8_t* at, object partition, Part* part) except? NULL
    cdef int64_t find_known(self, object segment, Part* part) except? -2
    cdef uint8_t* put_inline(self, uint8_t* at, object segment, int64_t position, Part* part, int64_t next_offset) except? NULL
    cdef uint8_t* put_range(self, uint8_t* at, object log, Part* part, int64_t next_offset) except? NULL
    cdef object take(self)
    cdef object answer_again(self, WaitingFetch wait)
    cdef int count_answer(self, began_ns, int64_t size) except -1


cdef class WaitingFetch:
    cdef FastFetch path
    cdef bytes frame
    cdef list watched
    cdef int64_t missing
    cdef object began_ns
    cdef object loop
    cdef object until_s
    cdef object timer
    cdef object done
    cdef bint is_last
    cdef bint is_over
    cdef bint sends_files

    cdef int watch(self) except -1
