from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t

from ottla.broker.fast_path.wire cimport Answers, Partitions, Topic


cdef struct Part:
    uint8_t* records
    int32_t size
    int32_t index


cdef struct Request:
    int16_t version
    int16_t acks
    const uint8_t* correlation_id
    int topic_count
    int part_count
    Topic[64] topics
    Part[64] parts


cdef class FastProduce:
    cdef object stats
    cdef Py_ssize_t max_frame_bytes
    cdef Partitions partitions
    cdef Answers answers
    cdef list appends
    cdef list used
    cdef int used_count
    cdef Request request

    cdef Py_ssize_t run(self, uint8_t* data, Py_ssize_t count) except -1
    cdef bint take(self, uint8_t* frame, Py_ssize_t size) except -1
    cdef int use(self, Topic* topic, Part* part) except -2
    cdef int respond(self, int64_t* offsets, int64_t* starts) except -1
    cdef int count_requests(self, int requests, int64_t bytes_in, int64_t bytes_out, int64_t elapsed_ns) except -1
