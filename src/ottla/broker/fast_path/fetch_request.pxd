from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t

from ottla.broker.fast_path.wire cimport Topic

cdef enum:
    LOG_START_SINCE = 5
    SESSION_SINCE = 7
    RACK_SINCE = 11
    FLEXIBLE_SINCE = 12
    BY_ID_SINCE = 13
    READ_COMMITTED = 1


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


cdef bint parse_fetch(Request* request, uint8_t* frame, Py_ssize_t size) noexcept
