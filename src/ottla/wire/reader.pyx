# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Decodes messages by plan, in C.

A plan is a struct in one version: a step per field with its wire format. If a C compiler is available, this
replaces the code that `decoding` generates, several times as fast, and the first use of a version needs
no compilation. Both give the same results and raise the same errors.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from ottla.wire import primitives

cdef extern from "Python.h":
    object PyObject_Vectorcall(object callable, PyObject** args, size_t nargsf, object kwnames)

cdef enum:
    MOST_FIELDS = 32
    MAX_STRING_BYTES = 0x7FFF
    MOST_TAGS_IN_A_HEADER = 1000


def unwritten(Py_ssize_t size):
    """An uninitialized bytearray of this size, to be overwritten completely."""
    return PyByteArray_FromStringAndSize(NULL, size)


cdef struct Reader:
    const uint8_t* start
    const uint8_t* at
    const uint8_t* end
    Py_ssize_t room


cdef class ReadStep:
    """The wire format of one field. `kind` is its `struct` format character, or one of ours:

    u: uuid, s: string, y: bytes, r: records, *: array of `element`, {: struct by `plan`
    """

    cdef char kind
    cdef bint is_nullable
    cdef bint is_flexible
    cdef readonly str name
    cdef str path
    cdef str what
    cdef ReadStep element
    cdef ReadPlan plan
    cdef Py_ssize_t smallest
    cdef int64_t tag
    cdef object default

    def __init__(self, str kind, *, str what, str path, bint is_nullable, bint is_flexible,
                 ReadStep element=None, ReadPlan plan=None, Py_ssize_t smallest=0, int64_t tag=-1, default=None):
        self.kind = <char>ord(kind)
        self.what = what
        self.path = path
        self.name = path.rpartition(".")[2]
        self.is_nullable = is_nullable
        self.is_flexible = is_flexible
        self.element = element
        self.plan = plan
        self.smallest = smallest
        self.tag = tag
        self.default = default


cdef class ReadPlan:
    """A struct in one version."""

    cdef object struct
    cdef str what
    cdef tuple names
    cdef list steps
    cdef list tagged
    cdef bint is_flexible
    cdef bint may_go_on
    cdef Py_ssize_t room

    def __init__(
        self, struct, str what, list steps, list tagged, *, bint is_flexible, bint may_go_on, Py_ssize_t room
    ):
        if len(steps) + len(tagged) > MOST_FIELDS:
            raise TypeError(f"{what}: {struct.__name__} has more than {MOST_FIELDS} fields")
        self.struct = struct
        self.what = what
        self.steps = steps
        self.tagged = tagged
        self.names = tuple([step.name for step in steps + tagged])
        self.is_flexible = is_flexible
        self.may_go_on = may_go_on
        self.room = room

    def decode(self, data not None, Py_ssize_t position, /):
        """Read the message that fills `data` from `position` to its end, or raise ProtocolError.

        Bytes after the last field of a request are ignored, as in Kafka: librdkafka (2.16) sends three bytes after
        a MetadataRequest for all topics.
        """
        cdef Py_buffer buffer
        cdef Reader reader
        PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE)
        try:
            if not 0 <= position <= buffer.len:
                raise primitives.ends_early(self.what, buffer.len)
            reader.start = <const uint8_t*>buffer.buf
            reader.at = reader.start + position
            reader.end = reader.start + buffer.len
            reader.room = self.room
            message = read_struct(self, &reader, data)
            if reader.at != reader.end and not self.may_go_on:
                raise primitives.left_over(self.what, reader.at - reader.start, buffer.len)
            return message
        except UnicodeDecodeError as error:
            raise primitives.bad_text(self.what, reader.at - reader.start, error) from None
        finally:
            PyBuffer_Release(&buffer)


cdef class HeaderReader:
    """Reads the header of a request. `apis` holds for each key the API and its first flexible version."""

    cdef object header
    cdef dict apis

    def __init__(self, header, dict apis):
        self.header = header
        self.apis = apis

    def read(self, frame not None, /):
        cdef Py_buffer buffer
        cdef Reader r
        PyObject_GetBuffer(frame, &buffer, PyBUF_SIMPLE)
        try:
            r.start = r.at = <const uint8_t*>buffer.buf
            r.end = r.start + buffer.len
            r.room = MOST_TAGS_IN_A_HEADER
            return self.read_from(&r)
        except UnicodeDecodeError as error:
            raise primitives.bad_text(WHAT_HEADER, r.at - r.start, error) from None
        finally:
            PyBuffer_Release(&buffer)

    cdef object read_from(self, Reader* r):
        need(r, 10, WHAT_HEADER)
        cdef int16_t version = <int16_t>uint16_at(r.at + 2)
        cdef int32_t correlation_id = <int32_t>uint32_at(r.at + 4)
        cdef int16_t length = <int16_t>uint16_at(r.at + 8)
        known = self.apis.get(<int16_t>uint16_at(r.at))
        if known is None:
            raise primitives.unknown_api(<int16_t>uint16_at(r.at))
        api, flexible_since = <tuple>known
        r.at += 10
        client_id = None
        if length != -1:
            if length < 0 or length > r.end - r.at:
                raise primitives.bad_length(WHAT_HEADER, "client_id", length, r.end - r.at)
            client_id = PyUnicode_DecodeUTF8(<const char*>r.at, length, NULL)
            r.at += length
        if version >= <int>flexible_since:
            read_tags(NO_TAGS, r, None, NULL)
        return self.header(api, version, correlation_id, client_id, r.at - r.start)


cdef str WHAT_HEADER = "request header"
cdef ReadPlan NO_TAGS = ReadPlan(object, WHAT_HEADER, [], [], is_flexible=True, may_go_on=True, room=0)


cdef inline int need(Reader* r, Py_ssize_t count, str what) except -1:
    if r.end - r.at < count:
        raise primitives.ends_early(what, r.end - r.start)
    return 0


cdef inline uint16_t uint16_at(const uint8_t* at) noexcept:
    return <uint16_t>((at[0] << 8) | at[1])


cdef inline uint32_t uint32_at(const uint8_t* at) noexcept:
    return (<uint32_t>at[0] << 24) | (<uint32_t>at[1] << 16) | (<uint32_t>at[2] << 8) | at[3]


cdef inline uint64_t uint64_at(const uint8_t* at) noexcept:
    return (<uint64_t>uint32_at(at) << 32) | uint32_at(at + 4)


cdef inline int64_t uvarint(Reader* r, str what) except -1:
    need(r, 1, what)
    cdef uint8_t byte = r.at[0]
    r.at += 1
    return byte if byte < 0x80 else rest_of_uvarint(r, byte, what)


cdef int64_t rest_of_uvarint(Reader* r, uint8_t byte, str what) except -1:
    cdef uint64_t value = byte & 0x7F
    cdef int index
    for index in range(1, 5):
        need(r, 1, what)
        byte = r.at[0]
        r.at += 1
        value |= <uint64_t>(byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return <int64_t>value
    raise primitives.bad_uvarint(r.at - r.start)


cdef inline Py_ssize_t prefix(ReadStep step, Reader* r) except -2:
    """A length or a count; -1 is null, if allowed."""
    cdef int64_t length
    if step.is_flexible:
        length = uvarint(r, step.what) - 1
    elif step.kind == c"s":
        need(r, 2, step.what)
        length = <int16_t>uint16_at(r.at)
        r.at += 2
    else:
        need(r, 4, step.what)
        length = <int32_t>uint32_at(r.at)
        r.at += 4
    if length < 0 and not (length == -1 and step.is_nullable):
        refuse = primitives.bad_count if step.kind == c"*" else primitives.bad_length
        raise refuse(step.what, step.path, length, r.end - r.at)
    return <Py_ssize_t>length


cdef object read_struct(ReadPlan plan, Reader* r, object view):
    cdef PyObject* values[MOST_FIELDS]
    cdef Py_ssize_t filled = 0
    cdef ReadStep step
    cdef object value
    try:
        for step in plan.steps:
            value = read_value(step, r, view)
            Py_INCREF(value)
            values[filled] = <PyObject*>value
            filled += 1
        if plan.is_flexible:
            for step in plan.tagged:
                Py_INCREF(step.default)
                values[filled] = <PyObject*>step.default
                filled += 1
            read_tags(plan, r, view, values + len(plan.steps))
        if filled == 0:
            return plan.struct()
        return PyObject_Vectorcall(plan.struct, values, 0, plan.names)
    finally:
        while filled > 0:
            filled -= 1
            Py_DECREF(<object>values[filled])


cdef int read_tags(ReadPlan plan, Reader* r, object view, PyObject** values) except -1:
    cdef int64_t count = uvarint(r, plan.what)
    if count == 0:
        return 0
    r.room -= count
    # A tagged field takes at least two bytes: its number and its size.
    if r.room < 0 or 2 * count > r.end - r.at:
        raise primitives.bad_count(plan.what, "tagged fields", count, r.end - r.at)
    cdef int64_t number, size
    cdef const uint8_t* begin
    for _ in range(count):
        number = uvarint(r, plan.what)
        size = uvarint(r, plan.what)
        if size > r.end - r.at:
            raise primitives.bad_length(plan.what, f"tagged field {number}", size, r.end - r.at)
        begin = r.at
        read_tag(plan, r, view, values, number, begin + size)
        r.at = begin + size
    return 0


cdef int read_tag(
    ReadPlan plan, Reader* r, object view, PyObject** values, int64_t number, const uint8_t* stop
) except -1:
    cdef Py_ssize_t index = 0
    cdef const uint8_t* begin = r.at
    cdef ReadStep step
    cdef object value
    for step in plan.tagged:
        if step.tag == number:
            value = read_value(step, r, view)
            if r.at != stop:
                raise primitives.bad_tag_size(step.what, step.path, stop - begin, r.at - begin)
            Py_INCREF(value)
            Py_DECREF(<object>values[index])
            values[index] = <PyObject*>value
            return 0
        index += 1
    return 0


cdef object read_value(ReadStep step, Reader* r, object view):
    cdef char kind = step.kind
    cdef const uint8_t* at = r.at
    if kind == c"s" or kind == c"y" or kind == c"r":
        return read_sized(step, r, view)
    if kind == c"*":
        return read_array(step, r, view)
    if kind == c"{":
        return read_nested(step, r, view)
    need(r, step.smallest, step.what)
    r.at += step.smallest
    if kind == c"i":
        return <int32_t>uint32_at(at)
    if kind == c"q":
        return <int64_t>uint64_at(at)
    if kind == c"h":
        return <int16_t>uint16_at(at)
    if kind == c"b":
        return <int8_t>at[0]
    if kind == c"?":
        return at[0] != 0
    if kind == c"u":
        return PyBytes_FromStringAndSize(<const char*>at, 16)
    if kind == c"H":
        return uint16_at(at)
    if kind == c"I":
        return uint32_at(at)
    return read_double(at)


cdef object read_double(const uint8_t* at):
    cdef uint64_t bits = uint64_at(at)
    cdef double value
    memcpy(&value, &bits, 8)
    return value


cdef object read_sized(ReadStep step, Reader* r, object view):
    cdef Py_ssize_t length = prefix(step, r)
    if length < 0:
        return None
    cdef const uint8_t* at = r.at
    if length > r.end - at or (step.kind == c"s" and length > MAX_STRING_BYTES):
        raise primitives.bad_length(step.what, step.path, length, r.end - at)
    if step.kind == c"s":
        text = PyUnicode_DecodeUTF8(<const char*>at, length, NULL)
        r.at = at + length
        return text
    r.at = at + length
    if step.kind == c"y":
        return PyBytes_FromStringAndSize(<const char*>at, length)
    return view[at - r.start : at - r.start + length]


cdef object read_array(ReadStep step, Reader* r, object view):
    cdef Py_ssize_t count = prefix(step, r)
    if count < 0:
        return None
    r.room -= count
    if r.room < 0 or count * step.smallest > r.end - r.at:
        raise primitives.bad_count(step.what, step.path, count, r.end - r.at)
    cdef tuple entries = PyTuple_New(count)
    cdef Py_ssize_t index
    cdef object entry
    for index in range(count):
        entry = read_value(step.element, r, view)
        Py_INCREF(entry)
        PyTuple_SET_ITEM(entries, index, entry)
    return entries


cdef object read_nested(ReadStep step, Reader* r, object view):
    cdef bint is_null
    if step.is_nullable:
        # KIP-893: one byte says whether the struct is present; for a tagged field, a count of it.
        need(r, 1, step.what)
        is_null = r.at[0] == 0 if step.tag >= 0 else <int8_t>r.at[0] < 0
        r.at += 1
        if is_null:
            return None
    return read_struct(step.plan, r, view)
