# cython: language_level=3, boundscheck=False, cdivision=True
"""Reading requests and writing responses in C, and finding partitions by their names on the wire.

Nothing here raises on invalid data: a request that is not as expected is left to the codec of `ottla.wire`.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy

from ottla.records.big_endian cimport get_int16

cdef enum:
    UUID_BYTES = 16
    INDEX_BYTES = 4
    MOST_KEYS = 4096


cdef class Answers:
    def __cinit__(self):
        self.data = NULL

    def __dealloc__(self):
        free(self.data)

    cdef uint8_t* end_with_room(self, Py_ssize_t size) except NULL:
        """The end of the responses, with room for this many bytes. Valid until the next call."""
        cdef uint8_t* larger
        if self.size + size > self.room:
            larger = <uint8_t*>realloc(self.data, 2 * (self.size + size))
            if larger == NULL:
                raise MemoryError
            self.data = larger
            self.room = 2 * (self.size + size)
        return self.data + self.size


cdef class Partitions:
    def __init__(self, topics):
        self.topics = topics
        self.known = {}
        self.last_key = b""

    cdef object find(self, const uint8_t* topic, Py_ssize_t size, int32_t index, bint is_by_id):
        """The partition, unless its topic is internal or unknown; then None."""
        cdef bytes key
        cdef const uint8_t* last
        cdef uint8_t[5] end
        if self.version != self.topics.version:
            self.version = self.topics.version
            self.known.clear()
            self.last_key = b""
        put_int32(end, index)
        end[INDEX_BYTES] = is_by_id
        last = self.last_key
        if (len(self.last_key) == size + INDEX_BYTES + 1 and memcmp(last, topic, size) == 0
                and memcmp(last + size, end, INDEX_BYTES + 1) == 0):
            return self.last
        key = PyBytes_FromStringAndSize(<const char*>topic, size)
        key += PyBytes_FromStringAndSize(<const char*>end, INDEX_BYTES + 1)
        partition = self.known.get(key)
        if partition is None:
            partition = self.look_up(key[:size], index, is_by_id)
            if partition is None:
                return None
            if len(self.known) >= MOST_KEYS:
                self.known.clear()
            self.known[key] = partition
        self.last_key = key
        self.last = partition
        return partition

    cdef object look_up(self, bytes topic, int32_t index, bint is_by_id):
        cdef object state = None
        if is_by_id:
            state = self.topics.by_id.get(topic)
        elif topic.isascii():
            state = self.topics.by_name.get(topic.decode())
        if state is None or not 0 <= index < len(state.partitions) or state.entry.is_internal:
            return None
        return state.partitions[index]


cdef int bit_length(int64_t value) noexcept:
    cdef int bits = 0
    while value > 0:
        value >>= 1
        bits += 1
    return bits


cdef bint take_header(Cursor* cursor, uint8_t* frame, Py_ssize_t size) noexcept:
    """Skip the header of a request, whose client id must be ASCII; `is_flexible` is set before."""
    cdef int16_t length
    cdef int at
    if size < 10:
        return False
    cursor.at = frame + 10
    cursor.end = frame + size
    length = get_int16(frame, 8)
    if length < -1 or length > left(cursor):
        return False
    for at in range(length):
        if cursor.at[at] >= 0x80:
            return False
    if length > 0:
        cursor.at += length
    return take_no_tags(cursor)


cdef int64_t take_varint(Cursor* cursor) noexcept:
    """An unsigned varint of up to four bytes; -1 if there is none."""
    cdef int64_t value = 0
    cdef int shift = 0
    while shift < 28 and cursor.at < cursor.end:
        value |= <int64_t>(cursor.at[0] & 0x7F) << shift
        cursor.at += 1
        if cursor.at[-1] < 0x80:
            return value
        shift += 7
    return -1


cdef int64_t take_length(Cursor* cursor) noexcept:
    """The length of an array or of bytes; -1 for null, or if there is none."""
    cdef int64_t length
    if cursor.is_flexible:
        length = take_varint(cursor) - 1
    elif left(cursor) < 4:
        return -1
    else:
        length = take_int32(cursor)
    return length if length >= 0 else -1


cdef int64_t take_string_length(Cursor* cursor) noexcept:
    """The same for a string."""
    cdef int64_t length
    if cursor.is_flexible:
        length = take_varint(cursor) - 1
    elif left(cursor) < 2:
        return -1
    else:
        length = get_int16(cursor.at, 0)
        cursor.at += 2
    return length if length >= 0 else -1


cdef bint take_no_tags(Cursor* cursor) noexcept:
    if not cursor.is_flexible:
        return True
    if left(cursor) < 1 or cursor.at[0] != 0:
        return False
    cursor.at += 1
    return True


cdef bint take_topic(Cursor* cursor, bint is_by_id, const uint8_t** topic, Py_ssize_t* size) noexcept:
    """A topic's name, or its id."""
    size[0] = UUID_BYTES if is_by_id else take_string_length(cursor)
    if size[0] < 1 or size[0] > left(cursor):
        return False
    topic[0] = cursor.at
    cursor.at += size[0]
    return True


cdef uint8_t* put_count(uint8_t* at, uint32_t count, bint is_flexible) noexcept:
    """The length of an array or of bytes."""
    if not is_flexible:
        return put_int32(at, count)
    count += 1
    while count >= 0x80:
        at[0] = <uint8_t>(count & 0x7F) | 0x80
        at += 1
        count >>= 7
    at[0] = <uint8_t>count
    return at + 1


cdef uint8_t* put_topic(uint8_t* at, const uint8_t* topic, Py_ssize_t size, bint is_flexible, bint is_by_id) noexcept:
    if not is_flexible:
        at[0] = (size >> 8) & 0xFF
        at[1] = size & 0xFF
        at += 2
    elif not is_by_id:
        at = put_count(at, size, True)
    memcpy(at, topic, size)
    return at + size
