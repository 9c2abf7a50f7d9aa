from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t

from ottla.broker.fast_path.wire cimport Topic

cdef enum:
    LOG_START_SINCE = 5
    SESSION_SINCE = 7
    RACK_SINCE = 11
    FLEXIBLE_SINCE = 12
    BY_ID_SINCE = 13
    READ_COMMITTED = 1
    MOST_PARTS = 64


cdef struct Part:
    int32_t index
    int32_t leader_epoch
    int32_t last_epoch
    int32_t most_bytes
    int64_t offset
    int64_t log_start


cdef struct Request:
    int16_t version
    int8_t isolation_level
    const uint8_t* correlation_id
    int32_t max_wait_ms
    int32_t min_bytes
    int32_t max_bytes
    # 0 without a session; the epoch then is -1, otherwise it is above 0.
    int32_t session_id
    int32_t session_epoch
    int topic_count
    int part_count
    Topic[MOST_PARTS] topics
    Part[MOST_PARTS] parts


cdef bint parse_fetch(Request* request, uint8_t* frame, Py_ssize_t size) noexcept
