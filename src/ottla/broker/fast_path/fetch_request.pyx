# cython: language_level=3, boundscheck=False, cdivision=True
"""The usual fetch requests, parsed in C."""

from libc.string cimport memcmp

from ottla.broker.fast_path.wire cimport (
    Cursor,
    left,
    take_header,
    take_int32,
    take_length,
    take_no_tags,
    take_string_length,
    take_topic,
)
from ottla.records.big_endian cimport get_int16, get_int64

cdef enum:
    FETCH = 1
    FIRST_VERSION = 4
    LAST_VERSION = 18
    LEADER_EPOCH_SINCE = 9
    REPLICA_STATE_SINCE = 15


cdef bint parse_fetch(Request* request, uint8_t* frame, Py_ssize_t size) noexcept:
    """Whether it is a consumer's fetch, without a session or incremental, and without anything unknown; its parts, if so."""
    cdef Cursor cursor
    cdef int64_t count
    cdef int number
    if size < 10 or get_int16(frame, 0) != FETCH:
        return False
    request.version = get_int16(frame, 2)
    if not FIRST_VERSION <= request.version <= LAST_VERSION:
        return False
    request.correlation_id = frame + 4
    cursor.is_flexible = request.version >= FLEXIBLE_SINCE
    if not take_header(&cursor, frame, size) or left(&cursor) < 25:
        return False
    if request.version < REPLICA_STATE_SINCE and take_int32(&cursor) != -1:
        return False
    request.max_wait_ms = take_int32(&cursor)
    request.min_bytes = take_int32(&cursor)
    request.max_bytes = take_int32(&cursor)
    request.isolation_level = <int8_t>cursor.at[0]
    cursor.at += 1
    if not 0 <= request.isolation_level <= READ_COMMITTED:
        return False
    if not take_session(request, &cursor):
        return False
    count = take_length(&cursor)
    # An incremental fetch may name no partitions.
    if count < (request.session_id == 0) or count > MOST_PARTS:
        return False
    request.topic_count = <int>count
    request.part_count = 0
    for number in range(request.topic_count):
        if not parse_topic(request, number, &cursor):
            return False
    if request.version >= SESSION_SINCE and take_length(&cursor) != 0:
        return False
    if request.version >= RACK_SINCE and not take_rack(&cursor):
        return False
    return take_no_tags(&cursor) and cursor.at == cursor.end


cdef bint take_session(Request* request, Cursor* cursor) noexcept:
    request.session_id = 0
    request.session_epoch = -1
    if request.version < SESSION_SINCE:
        return True
    if left(cursor) < 8:
        return False
    request.session_id = take_int32(cursor)
    request.session_epoch = take_int32(cursor)
    if request.session_id == 0:
        return request.session_epoch == -1
    return request.session_id > 0 and request.session_epoch > 0


cdef bint take_rack(Cursor* cursor) noexcept:
    """Without other replicas it does not matter, as long as it is ASCII."""
    cdef int64_t size = take_string_length(cursor)
    if size < 0 or size > left(cursor):
        return False
    while size:
        if cursor.at[0] >= 0x80:
            return False
        cursor.at += 1
        size -= 1
    return True


cdef bint parse_topic(Request* request, int number, Cursor* cursor) noexcept:
    cdef Topic* topic = &request.topics[number]
    cdef int64_t count
    cdef int other
    if not take_topic(cursor, request.version >= BY_ID_SINCE, &topic.key, &topic.size):
        return False
    # A topic that is named twice is once in the response.
    for other in range(number):
        if request.topics[other].size == topic.size and memcmp(request.topics[other].key, topic.key, topic.size) == 0:
            return False
    count = take_length(cursor)
    if count < 1 or count > MOST_PARTS - request.part_count:
        return False
    topic.first_part = request.part_count
    for other in range(<int>count):
        if not parse_part(&request.parts[request.part_count], request.version, cursor):
            return False
        request.part_count += 1
    topic.end_part = request.part_count
    return take_no_tags(cursor)


cdef bint parse_part(Part* part, int16_t version, Cursor* cursor) noexcept:
    cdef int size = 16
    size += 4 * (version >= LEADER_EPOCH_SINCE) + 4 * (version >= FLEXIBLE_SINCE) + 8 * (version >= LOG_START_SINCE)
    if left(cursor) < size:
        return False
    part.index = take_int32(cursor)
    part.leader_epoch = take_int32(cursor) if version >= LEADER_EPOCH_SINCE else -1
    part.offset = get_int64(cursor.at, 0)
    cursor.at += 8
    part.last_epoch = take_int32(cursor) if version >= FLEXIBLE_SINCE else -1
    part.log_start = -1
    if version >= LOG_START_SINCE:
        part.log_start = get_int64(cursor.at, 0)
        cursor.at += 8
    part.most_bytes = take_int32(cursor)
    return take_no_tags(cursor)
