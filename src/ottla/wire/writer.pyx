# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Encodes messages by plan, in C; the counterpart of `reader`."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_Resize
from cpython.float cimport PyFloat_AsDouble
from cpython.long cimport PyLong_AsLongLong
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

from ottla.wire import primitives

cdef enum:
    MAX_STRING_BYTES = 0x7FFF

cdef Py_ssize_t COPIED_RECORD_BYTES = primitives.COPIED_RECORD_BYTES


cdef class WriteStep:
    """The wire format of one field. `kind` is its `struct` format character, or one of ours:

    u: uuid, s: string, y: bytes, r: records, *: array of `element`, {: struct by `plan`
    """

    cdef char kind
    cdef bint is_nullable
    cdef bint is_flexible
    cdef str name
    cdef str path
    cdef WriteStep element
    cdef WritePlan plan
    cdef int size
    cdef int64_t tag
    cdef object default

    def __init__(self, str kind, *, str path, bint is_nullable, bint is_flexible, WriteStep element=None,
                 WritePlan plan=None, int size=0, int64_t tag=-1, default=None):
        self.kind = <char>ord(kind)
        self.path = path
        self.name = path.rpartition(".")[2]
        self.is_nullable = is_nullable
        self.is_flexible = is_flexible
        self.element = element
        self.plan = plan
        self.size = size
        self.tag = tag
        self.default = default


cdef class WritePlan:
    """A struct in one version."""

    cdef str what
    cdef list steps
    cdef list tagged
    cdef bint is_flexible

    def __init__(self, str what, list steps, list tagged, *, bint is_flexible):
        self.what = what
        self.steps = steps
        self.tagged = tagged
        self.is_flexible = is_flexible

    def encode(self, message, bytearray before not None, /):
        """Append the message to `before`; return the buffers to send, of which `before` is the first."""
        return self.write(message, before).parts

    def encode_framed(self, message, bytearray before not None, /):
        """As `encode`; the first four bytes of `before` become the size of all that follows them."""
        cdef Writer writer = self.write(message, before)
        put(<uint8_t*>PyByteArray_AS_STRING(before), writer.earlier + writer.size - 4, 4)
        return writer.parts

    def encode_response(self, message, int32_t correlation_id, /):
        """A whole frame: its size, a response header of version 0, the message."""
        cdef bytearray before = PyByteArray_FromStringAndSize(NULL, 8)
        put(<uint8_t*>PyByteArray_AS_STRING(before) + 4, <uint32_t>correlation_id, 4)
        return self.encode_framed(message, before)

    def encode_flexible_response(self, message, int32_t correlation_id, /):
        """A whole frame: its size, a response header of version 1, the message."""
        cdef bytearray before = PyByteArray_FromStringAndSize(NULL, 9)
        put(<uint8_t*>PyByteArray_AS_STRING(before) + 4, <uint64_t><uint32_t>correlation_id << 8, 5)
        return self.encode_framed(message, before)

    cdef Writer write(self, message, bytearray before):
        cdef Writer writer = Writer.__new__(Writer)
        writer.parts = []
        writer.earlier = 0
        writer.current = before
        writer.size = len(before)
        grow(writer, 200)
        try:
            write_struct(self, message, writer)
        except (TypeError, OverflowError, AttributeError, BufferError) as error:
            raise primitives.unencodable(self.what, error) from error
        finish(writer)
        return writer


cdef class Writer:
    cdef bytearray current
    cdef uint8_t* data
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity
    cdef Py_ssize_t earlier
    cdef list parts


cdef int grow(Writer w, Py_ssize_t count) except -1:
    w.capacity = 2 * w.size + count
    PyByteArray_Resize(w.current, w.capacity)
    w.data = <uint8_t*>PyByteArray_AS_STRING(w.current)
    return 0


cdef int finish(Writer w) except -1:
    PyByteArray_Resize(w.current, w.size)
    w.parts.append(w.current)
    return 0


cdef inline uint8_t* take(Writer w, Py_ssize_t count) except NULL:
    """The position to write the next bytes to."""
    if w.size + count > w.capacity:
        grow(w, count)
    cdef uint8_t* at = w.data + w.size
    w.size += count
    return at


cdef inline void put(uint8_t* at, uint64_t value, int size) noexcept:
    while size > 0:
        size -= 1
        at[size] = <uint8_t>value
        value >>= 8


cdef int write_uvarint(Writer w, uint64_t value) except -1:
    while value >= 0x80:
        take(w, 1)[0] = <uint8_t>(value | 0x80)
        value >>= 7
    take(w, 1)[0] = <uint8_t>value
    return 0


cdef int write_prefix(WriteStep step, Py_ssize_t length, Writer w) except -1:
    """A length or a count; -1 is null."""
    if length < 0 and not step.is_nullable:
        raise TypeError(f"{step.path} is None")
    if step.kind == c"s" and length > MAX_STRING_BYTES:
        raise TypeError(f"{step.path}: a string of {length} bytes exceeds {MAX_STRING_BYTES}")
    if step.is_flexible:
        return write_uvarint(w, length + 1)
    if step.kind == c"s":
        put(take(w, 2), length, 2)
    else:
        put(take(w, 4), length, 4)
    return 0


cdef int write_struct(WritePlan plan, object message, Writer w) except -1:
    cdef WriteStep step
    for step in plan.steps:
        write_value(step, getattr(message, step.name), w)
    if plan.is_flexible:
        if plan.tagged:
            write_tags(plan, message, w)
        else:
            take(w, 1)[0] = 0
    return 0


cdef int write_tags(WritePlan plan, object message, Writer w) except -1:
    """The tagged fields that differ from their defaults; nearly always none, which is one zero byte."""
    cdef WriteStep step
    cdef Py_ssize_t count_at = w.size
    cdef Py_ssize_t begin
    cdef int count = 0
    take(w, 1)[0] = 0
    for step in plan.tagged:
        value = getattr(message, step.name)
        if value is step.default or value == step.default:
            continue
        write_uvarint(w, step.tag)
        begin = w.size
        write_value(step, value, w)
        insert_size(w, begin)
        count += 1
    w.data[count_at] = count
    return 0


cdef int insert_size(Writer w, Py_ssize_t begin) except -1:
    """Insert the size of the data written since `begin` before it."""
    cdef Py_ssize_t size = w.size - begin
    write_uvarint(w, size)
    cdef Py_ssize_t width = w.size - begin - size
    memmove(w.data + begin + width, w.data + begin, size)
    w.size = begin
    write_uvarint(w, size)
    w.size = begin + width + size
    return 0


cdef int write_value(WriteStep step, object value, Writer w) except -1:
    cdef char kind = step.kind
    if kind == c"s":
        return write_text(step, value, w)
    if kind == c"y" or kind == c"r":
        return write_bytes(step, value, w)
    if kind == c"*":
        return write_array(step, value, w)
    if kind == c"{":
        return write_nested(step, value, w)
    if kind == c"u":
        return write_uuid(step, value, w)
    if kind == c"d":
        return write_double(value, w)
    if kind == c"?":
        take(w, 1)[0] = 1 if value else 0
        return 0
    return write_integer(step, value, w)


cdef int write_integer(WriteStep step, object value, Writer w) except -1:
    cdef int64_t number = PyLong_AsLongLong(value)
    cdef int bits = 8 * step.size
    if bits < 64:
        if step.kind == c"H" or step.kind == c"I":
            if number < 0 or number >> bits:
                raise OverflowError(f"{step.path} has invalid value {number}")
        elif number >> (bits - 1) not in (0, -1):
            raise OverflowError(f"{step.path} has invalid value {number}")
    put(take(w, step.size), <uint64_t>number, step.size)
    return 0


cdef int write_double(object value, Writer w) except -1:
    cdef double number = PyFloat_AsDouble(value)
    cdef uint64_t bits
    memcpy(&bits, &number, 8)
    put(take(w, 8), bits, 8)
    return 0


cdef int write_uuid(WriteStep step, bytes value, Writer w) except -1:
    if value is None or len(value) != 16:
        raise TypeError(f"{step.path} is not 16 bytes")
    memcpy(take(w, 16), <const char*>value, 16)
    return 0


cdef int write_text(WriteStep step, object value, Writer w) except -1:
    cdef Py_ssize_t length = -1
    cdef const char* text
    if value is None:
        return write_prefix(step, -1, w)
    if not isinstance(value, str):
        raise TypeError(f"{step.path} is not a string")
    text = PyUnicode_AsUTF8AndSize(value, &length)
    write_prefix(step, length, w)
    memcpy(take(w, length), text, length)
    return 0


cdef int write_bytes(WriteStep step, object value, Writer w) except -1:
    cdef Py_buffer buffer
    if value is None:
        return write_prefix(step, -1, w)
    if step.kind == c"r" and is_file_range(value):
        write_prefix(step, len(value), w)
        append_part(w, value, len(value))
        return 0
    PyObject_GetBuffer(value, &buffer, PyBUF_SIMPLE)
    try:
        write_prefix(step, buffer.len, w)
        if step.kind == c"y" or buffer.len <= COPIED_RECORD_BYTES:
            memcpy(take(w, buffer.len), buffer.buf, buffer.len)
        else:
            append_part(w, value, buffer.len)
    finally:
        PyBuffer_Release(&buffer)
    return 0


cdef bint is_file_range(object value) except -1:
    if PyObject_CheckBuffer(value):
        return False
    from ottla.core.file_range import FileRange  # not before it is needed

    return type(value) is FileRange


cdef int append_part(Writer w, object value, Py_ssize_t size) except -1:
    """Send this object between the bytes written so far and those that follow."""
    finish(w)
    w.parts.append(value)
    w.earlier += w.size + size
    w.current = bytearray()
    w.size = 0
    grow(w, 100)
    return 0


cdef int write_array(WriteStep step, object value, Writer w) except -1:
    if value is None:
        return write_prefix(step, -1, w)
    write_prefix(step, len(value), w)
    for entry in value:
        write_value(step.element, entry, w)
    return 0


cdef int write_nested(WriteStep step, object value, Writer w) except -1:
    if step.is_nullable:
        take(w, 1)[0] = 1 if value is not None else 0 if step.tag >= 0 else 0xFF
        if value is None:
            return 0
    return write_struct(step.plan, value, w)
