from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t

from ottla.broker.fast_path.wire cimport Answers, Partitions, Topic


cdef struct Part:
    int32_t index
    int32_t leader_epoch
    int32_t last_epoch
    int32_t most_bytes
    int64_t offset


cdef struct Request:
    int16_t version
    int8_t isolation_level
    const uint8_t* correlation_id
    int32_t max_wait_ms
    int32_t min_bytes
    int32_t max_bytes
    int topic_count
    int part_count
    Topic[64] topics
    Part[64] parts


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
    cdef int64_t total
    cdef Request request
    cdef WaitingFetch waiting

    cdef Py_ssize_t serve(self, uint8_t* data, Py_ssize_t count) except -1
    cdef Outcome answer(self, uint8_t* frame, Py_ssize_t size, bint is_last) except *
    cdef uint8_t* put_partition(self, uint8_t* at, object partition, Part* part, int64_t room) except? NULL
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

    cdef int watch(self) except -1
