from libc.stdint cimport int64_t

from ottla.broker.fast_path.fetch_request cimport MOST_PARTS, Part, Request


cdef class SessionParts:
    """What an incremental fetch (KIP-227) reads: the partitions of its session, with the changes in the request."""

    cdef object sessions
    cdef object topics
    cdef object session
    cdef list keys
    cdef list partitions
    cdef dict named
    cdef int count
    cdef Part[MOST_PARTS] parts

    cdef bint find(self, Request* request, bint is_again) except -1
    cdef bint name_parts(self, Request* request, bint is_by_id) except -1
    cdef object find_partition(self, object key, bint is_by_id)
    cdef bint is_news(self, int number, int64_t high_watermark, int64_t log_start) except -1
    cdef int use(self, Request* request) except -1
    cdef int rewind(self, Request* request) except -1
    cdef int sent(self, int number, int64_t high_watermark, int64_t log_start, bint has_records) except -1
