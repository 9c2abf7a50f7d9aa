"""Avro values as Arrow arrays, without an object per value.

A tree of nodes reads values of the writer's schema and appends them to the buffers of columns. What it cannot do is
left to fastavro: see ottla.decoding.programs.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

import pyarrow as pa


class Unsupported(Exception):
    """This schema cannot be read here into this type."""


cdef class Cursor:
    cdef const uint8_t* data
    cdef Py_ssize_t at
    cdef Py_ssize_t end

    cdef int64_t varint(self) except? -1:
        cdef uint64_t value = 0
        cdef int shift = 0
        cdef uint8_t byte
        while True:
            if self.at >= self.end:
                raise ValueError("the value ends too early")
            byte = self.data[self.at]
            self.at += 1
            value |= (<uint64_t> (byte & 0x7F)) << shift
            if byte < 0x80:
                return <int64_t> (value >> 1) ^ -(<int64_t> (value & 1))
            shift += 7
            if shift > 63:
                raise ValueError("a number is too long")

    cdef const uint8_t* take(self, int64_t size) except NULL:
        cdef const uint8_t* found = self.data + self.at
        if size < 0 or size > self.end - self.at:
            raise ValueError("the value ends too early")
        self.at += size
        return found


cdef class Buffer:
    """Growing memory, which Arrow then uses without a copy."""

    cdef uint8_t* data
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity
    cdef Py_ssize_t shape[1]
    cdef Py_ssize_t strides[1]

    def __dealloc__(self):
        free(self.data)

    cdef int need(self, Py_ssize_t more) except -1:
        cdef Py_ssize_t wanted
        cdef uint8_t* moved
        if self.size + more > self.capacity:
            wanted = max(self.size + more, 2 * self.capacity, 1024)
            moved = <uint8_t*> realloc(self.data, wanted)
            if moved is NULL:
                raise MemoryError
            self.data = moved
            self.capacity = wanted
        return 0

    cdef int put(self, const void* source, Py_ssize_t size) except -1:
        self.need(size)
        memcpy(self.data + self.size, source, size)
        self.size += size
        return 0

    def __getbuffer__(self, Py_buffer* view, int flags):
        self.need(1)
        self.shape[0] = self.size
        self.strides[0] = 1
        view.buf = self.data
        view.format = "B"
        view.internal = NULL
        view.itemsize = 1
        view.len = self.size
        view.ndim = 1
        view.obj = self
        view.readonly = 1
        view.shape = self.shape
        view.strides = self.strides
        view.suboffsets = NULL

    def __releasebuffer__(self, Py_buffer* view):
        pass


cdef class Bits:
    cdef Buffer buffer
    cdef Py_ssize_t count
    cdef Py_ssize_t zeros

    def __cinit__(self):
        self.buffer = Buffer()

    cdef int put(self, bint bit) except -1:
        if self.count & 7 == 0:
            self.buffer.need(1)
            self.buffer.data[self.buffer.size] = 0
            self.buffer.size += 1
        if bit:
            self.buffer.data[self.count >> 3] |= 1 << (self.count & 7)
        else:
            self.zeros += 1
        self.count += 1
        return 0


cdef class Node:
    """One column, or a part of one; `valid` has a bit for each value."""

    cdef object type
    cdef Bits valid

    def __init__(self, kind):
        self.type = kind
        self.clear()

    def clear(self):
        self.valid = Bits()

    cdef int read(self, Cursor cursor) except -1:
        raise NotImplementedError

    cdef int skip(self, Cursor cursor) except -1:
        raise NotImplementedError

    cdef int null(self) except -1:
        raise NotImplementedError

    def finish(self):
        raise NotImplementedError

    def made(self, buffers, children=None):
        bits = pa.py_buffer(self.valid.buffer) if self.valid.zeros else None
        return pa.Array.from_buffers(
            self.type, self.valid.count, [bits, *buffers], self.valid.zeros, children=children
        )


cdef enum:
    VARINT = 0
    FLOAT = 1
    DOUBLE = 2
    INT32 = 3
    INT64 = 4


cdef class Number(Node):
    """An int, long, float or double, as wide as the column is."""

    cdef int source
    cdef int target
    cdef int64_t factor
    cdef Buffer values

    def __init__(self, kind, source, target, factor=1):
        self.source = {"int": VARINT, "long": VARINT, "float": FLOAT, "double": DOUBLE}[source]
        self.target = {"int32": INT32, "int64": INT64, "float": FLOAT, "double": DOUBLE}[target]
        self.factor = factor
        super().__init__(kind)

    def clear(self):
        super().clear()
        self.values = Buffer()

    cdef int read(self, Cursor cursor) except -1:
        cdef int64_t whole = 0
        cdef double fraction = 0
        cdef float single = 0
        if self.source == VARINT:
            whole = cursor.varint() * self.factor
            fraction = <double> whole
        elif self.source == FLOAT:
            memcpy(&single, cursor.take(4), 4)
            fraction = single
        else:
            memcpy(&fraction, cursor.take(8), 8)
        return self.store(whole, fraction)

    cdef int store(self, int64_t whole, double fraction) except -1:
        cdef int32_t narrow
        cdef float single
        if self.target == INT64:
            self.values.put(&whole, 8)
        elif self.target == INT32:
            if whole < -2147483648 or whole > 2147483647:
                raise ValueError("a number is out of the range of int")
            narrow = <int32_t> whole
            self.values.put(&narrow, 4)
        elif self.target == DOUBLE:
            self.values.put(&fraction, 8)
        else:
            single = <float> fraction
            self.values.put(&single, 4)
        return self.valid.put(True)

    cdef int skip(self, Cursor cursor) except -1:
        cdef int64_t whole
        if self.source == VARINT:
            whole = cursor.varint()
            if self.target == INT32 and (whole < -2147483648 or whole > 2147483647):
                raise ValueError("a number is out of the range of int")
        else:
            cursor.take(4 if self.source == FLOAT else 8)
        return 0

    cdef int null(self) except -1:
        cdef int64_t zero = 0
        self.values.put(&zero, 8 if self.target in (INT64, DOUBLE) else 4)
        return self.valid.put(False)

    def finish(self):
        return self.made([pa.py_buffer(self.values)])


cdef class Truth(Node):
    cdef Bits values

    def clear(self):
        super().clear()
        self.values = Bits()

    cdef int read(self, Cursor cursor) except -1:
        self.values.put(cursor.take(1)[0] != 0)
        return self.valid.put(True)

    cdef int skip(self, Cursor cursor) except -1:
        cursor.take(1)
        return 0

    cdef int null(self) except -1:
        self.values.put(False)
        return self.valid.put(False)

    def finish(self):
        return self.made([pa.py_buffer(self.values.buffer)])


cdef class Text(Node):
    """A string, bytes, or a fixed (of `size` bytes); or a symbol of an enum."""

    cdef Py_ssize_t size
    cdef list symbols
    cdef Buffer offsets
    cdef Buffer values

    def __init__(self, kind, size=-1, symbols=None):
        self.size = size
        self.symbols = symbols
        super().__init__(kind)

    def clear(self):
        cdef int32_t zero = 0
        super().clear()
        self.offsets = Buffer()
        self.values = Buffer()
        self.offsets.put(&zero, 4)

    cdef int end(self, bint is_valid) except -1:
        cdef int32_t at
        if self.values.size > 2147483647:
            raise OverflowError("more than 2 GB of text in a batch")
        at = <int32_t> self.values.size
        self.offsets.put(&at, 4)
        return self.valid.put(is_valid)

    cdef int read(self, Cursor cursor) except -1:
        cdef int64_t size
        cdef bytes symbol
        if self.symbols is not None:
            symbol = self.symbol(cursor)
            self.values.put(<const char*> symbol, len(symbol))
        else:
            size = self.size if self.size >= 0 else cursor.varint()
            self.values.put(cursor.take(size), size) if size else 0
        return self.end(True)

    cdef bytes symbol(self, Cursor cursor):
        cdef int64_t index = cursor.varint()
        if index < 0 or index >= len(self.symbols):
            raise ValueError(f"the enum has no symbol {index}")
        return <bytes> self.symbols[index]

    cdef int skip(self, Cursor cursor) except -1:
        cdef int64_t size
        if self.symbols is not None:
            self.symbol(cursor)
        else:
            size = self.size if self.size >= 0 else cursor.varint()
            if size:
                cursor.take(size)
        return 0

    cdef int null(self) except -1:
        return self.end(False)

    def finish(self):
        return self.made([pa.py_buffer(self.offsets), pa.py_buffer(self.values)])


cdef class Decimal(Node):
    """Big-endian bytes as 128 bits."""

    cdef Py_ssize_t size
    cdef Buffer values

    def __init__(self, kind, size=-1):
        self.size = size
        super().__init__(kind)

    def clear(self):
        super().clear()
        self.values = Buffer()

    cdef int read(self, Cursor cursor) except -1:
        cdef int64_t size = self.size if self.size >= 0 else cursor.varint()
        cdef const uint8_t* digits
        cdef uint8_t number[16]
        cdef Py_ssize_t at
        memset(number, 0, 16)
        if size:
            digits = cursor.take(size)
            if size > 16:
                raise ValueError("a decimal has more than 38 digits")
            if digits[0] & 0x80:
                memset(number, 0xFF, 16)
            for at in range(size):
                number[size - 1 - at] = digits[at]
        self.values.put(number, 16)
        return self.valid.put(True)

    cdef int skip(self, Cursor cursor) except -1:
        cdef int64_t size = self.size if self.size >= 0 else cursor.varint()
        if size > 16:
            raise ValueError("a decimal has more than 38 digits")
        if size:
            cursor.take(size)
        return 0

    cdef int null(self) except -1:
        cdef uint8_t number[16]
        memset(number, 0, 16)
        self.values.put(number, 16)
        return self.valid.put(False)

    def finish(self):
        return self.made([pa.py_buffer(self.values)])


cdef class Ignored(Node):
    """A null."""

    cdef int read(self, Cursor cursor) except -1:
        return 0

    cdef int skip(self, Cursor cursor) except -1:
        return 0

    cdef int null(self) except -1:
        return 0


cdef class Optional(Node):
    """A union of null and at most one other; or of that alone."""

    cdef Node other
    cdef list is_null

    def __init__(self, Node other, is_null):
        self.other = other
        self.is_null = is_null
        super().__init__(other.type)

    def clear(self):
        self.other.clear()

    cdef bint branch(self, Cursor cursor) except -1:
        cdef int64_t index = cursor.varint()
        if index < 0 or index >= len(self.is_null):
            raise ValueError(f"the union has no type {index}")
        return self.is_null[index]

    cdef int read(self, Cursor cursor) except -1:
        return self.other.null() if self.branch(cursor) else self.other.read(cursor)

    cdef int skip(self, Cursor cursor) except -1:
        return 0 if self.branch(cursor) else self.other.skip(cursor)

    cdef int null(self) except -1:
        return self.other.null()

    def finish(self):
        return self.other.finish()


cdef class Constant(Node):
    """A field that the writer does not have: its default, or null."""

    cdef Node other
    cdef bytes data
    cdef Cursor cursor

    def __init__(self, Node other, data):
        self.other = other
        self.data = data
        self.cursor = Cursor()
        super().__init__(other.type)

    def clear(self):
        self.other.clear()

    cdef int read(self, Cursor cursor) except -1:
        if self.data is None:
            return self.other.null()
        self.cursor.data = <const uint8_t*> <const char*> self.data
        self.cursor.at = 0
        self.cursor.end = len(self.data)
        return self.other.read(self.cursor)

    cdef int skip(self, Cursor cursor) except -1:
        return 0

    cdef int null(self) except -1:
        return self.other.null()

    def finish(self):
        return self.other.finish()


cdef class Record(Node):
    """`read` are the fields in the writer's order, those of no column to be skipped; `columns` in the column's."""

    cdef list fields
    cdef list is_read
    cdef list columns

    def __init__(self, kind, fields, is_read, columns):
        self.fields = fields
        self.is_read = is_read
        self.columns = columns
        super().__init__(kind)

    def clear(self):
        super().clear()
        for each in self.columns:
            each.clear()

    cdef int read(self, Cursor cursor) except -1:
        cdef Node node
        cdef Py_ssize_t at
        for at in range(len(self.fields)):
            node = <Node> self.fields[at]
            if self.is_read[at]:
                node.read(cursor)
            else:
                node.skip(cursor)
        return self.valid.put(True)

    cdef int skip(self, Cursor cursor) except -1:
        cdef Node node
        for node in self.fields:
            node.skip(cursor)
        return 0

    cdef int null(self) except -1:
        cdef Node node
        for node in self.columns:
            node.null()
        return self.valid.put(False)

    def finish(self):
        return self.made([], [each.finish() for each in self.columns])


cdef enum:
    MOST_ITEMS = 10000000


cdef class Items(Node):
    """An array, or a map: then with keys."""

    cdef Node keys
    cdef Node values
    cdef Buffer offsets
    cdef int32_t count

    def __init__(self, kind, Node values, Node keys=None):
        self.values = values
        self.keys = keys
        super().__init__(kind)

    def clear(self):
        cdef int32_t zero = 0
        super().clear()
        self.values.clear()
        if self.keys is not None:
            self.keys.clear()
        self.offsets = Buffer()
        self.offsets.put(&zero, 4)
        self.count = 0

    cdef int64_t block(self, Cursor cursor) except? -1:
        cdef int64_t count = cursor.varint()
        if count < 0:
            count = -count
            cursor.varint()
        if count > MOST_ITEMS:
            raise ValueError(f"an array of {count} items is too large")
        return count

    cdef int read(self, Cursor cursor) except -1:
        cdef int64_t count = self.block(cursor)
        cdef int64_t at
        while count:
            if self.count + count > 2147483647:
                raise OverflowError("too many items in a batch")
            for at in range(count):
                if self.keys is not None:
                    self.keys.read(cursor)
                self.values.read(cursor)
            self.count += <int32_t> count
            count = self.block(cursor)
        self.offsets.put(&self.count, 4)
        return self.valid.put(True)

    cdef int skip(self, Cursor cursor) except -1:
        cdef int64_t count = self.block(cursor)
        cdef int64_t at
        while count:
            for at in range(count):
                if self.keys is not None:
                    self.keys.skip(cursor)
                self.values.skip(cursor)
            count = self.block(cursor)
        return 0

    cdef int null(self) except -1:
        self.offsets.put(&self.count, 4)
        return self.valid.put(False)

    def finish(self):
        values = self.values.finish()
        if self.keys is not None:
            fields = [self.type.key_field, self.type.item_field]
            values = pa.StructArray.from_arrays([self.keys.finish(), values], fields=fields)
        return self.made([pa.py_buffer(self.offsets)], [values])


def decode(Node root, values, Py_ssize_t begin):
    """The rows of an array of binary, whose data begin at this byte, and the errors: (array, list or None)."""
    cdef Cursor cursor = Cursor()
    cdef list errors = None
    root.clear()
    try:
        _decode_all(root, cursor, values, begin)
    except (ValueError, OverflowError):
        root.clear()
        errors = _decode_checked(root, cursor, values, begin)
    found = root.finish()
    found.validate(full=True)
    return found, errors


cdef object _open(Cursor cursor, values):
    """The offsets and the data of an array of binary."""
    _, offsets, data = values.buffers()
    cursor.data = <const uint8_t*> <size_t> (0 if data is None else data.address)
    return offsets, data


cdef int _decode_all(Node root, Cursor cursor, values, Py_ssize_t begin) except -1:
    kept = _open(cursor, values)
    cdef const int32_t* ends = (<const int32_t*> <size_t> kept[0].address) + <Py_ssize_t> values.offset
    cdef Py_ssize_t at
    for at in range(len(values)):
        cursor.at = ends[at] + begin
        cursor.end = ends[at + 1]
        root.read(cursor)
        if cursor.at != cursor.end:
            raise ValueError("bytes are left over")
    return 0


cdef list _decode_checked(Node root, Cursor cursor, values, Py_ssize_t begin):
    """Each value is read to its end before anything of it is stored."""
    kept = _open(cursor, values)
    cdef const int32_t* ends = (<const int32_t*> <size_t> kept[0].address) + <Py_ssize_t> values.offset
    cdef Py_ssize_t at
    cdef list errors = []
    for at in range(len(values)):
        cursor.at = ends[at] + begin
        cursor.end = ends[at + 1]
        try:
            root.skip(cursor)
            if cursor.at != cursor.end:
                raise ValueError(f"{cursor.end - cursor.at} bytes are left over")
        except ValueError as wrong:
            root.null()
            errors.append(f"not of its schema: {wrong}")
            continue
        cursor.at = ends[at] + begin
        root.read(cursor)
        errors.append(None)
    return errors
