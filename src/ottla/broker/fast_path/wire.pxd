from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t

from ottla.records.big_endian cimport get_int32, put_uint32


cdef class Answers:
    """Responses, one after another."""

    cdef uint8_t* data
    cdef Py_ssize_t size
    cdef Py_ssize_t room

    cdef uint8_t* end_with_room(self, Py_ssize_t size) except NULL


cdef class Partitions:
    """Partitions by the name or id of the topic as on the wire, and the index."""

    cdef object topics
    cdef object version
    cdef dict known
    cdef bytes last_key
    cdef object last

    cdef object find(self, const uint8_t* topic, Py_ssize_t size, int32_t index, bint is_by_id)
    cdef object look_up(self, bytes topic, int32_t index, bint is_by_id)


# A topic of a request: its name or id as on the wire, and its share of the request's partitions.
cdef struct Topic:
    const uint8_t* key
    Py_ssize_t size
    int first_part
    int end_part


cdef int bit_length(int64_t value) noexcept


# Reading

cdef struct Cursor:
    uint8_t* at
    uint8_t* end
    bint is_flexible


cdef inline int64_t left(Cursor* cursor) noexcept:
    return cursor.end - cursor.at


cdef inline int32_t take_int32(Cursor* cursor) noexcept:
    """After a check that it is there."""
    cursor.at += 4
    return get_int32(cursor.at - 4, 0)


cdef bint take_header(Cursor* cursor, uint8_t* frame, Py_ssize_t size) noexcept
cdef int64_t take_varint(Cursor* cursor) noexcept
cdef int64_t take_length(Cursor* cursor) noexcept
cdef int64_t take_string_length(Cursor* cursor) noexcept
cdef bint take_no_tags(Cursor* cursor) noexcept
cdef bint take_topic(Cursor* cursor, bint is_by_id, const uint8_t** topic, Py_ssize_t* size) noexcept


# Writing

cdef inline uint8_t* put_byte(uint8_t* at, uint8_t value) noexcept:
    at[0] = value
    return at + 1


cdef inline uint8_t* put_int32(uint8_t* at, int32_t value) noexcept:
    put_uint32(at, 0, <uint32_t>value)
    return at + 4


cdef inline uint8_t* put_int64(uint8_t* at, int64_t value) noexcept:
    put_uint32(at, 0, <uint32_t>(value >> 32))
    put_uint32(at, 4, <uint32_t>(value & 0xFFFFFFFF))
    return at + 8


cdef uint8_t* put_count(uint8_t* at, uint32_t count, bint is_flexible) noexcept
cdef uint8_t* put_topic(uint8_t* at, const uint8_t* topic, Py_ssize_t size, bint is_flexible, bint is_by_id) noexcept
