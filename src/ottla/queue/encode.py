"""The bytes of a push: a message as stored in a part, and the info_push line.

Compiled by Cython with the C types in encode.pxd if a C compiler is available, otherwise run as plain Python.
"""

from __future__ import annotations

from fastcrc import crc32 as checksums

from ottla.queue.errors import NotReady
from ottla.queue.folder import MAX_NAME_BYTES
from ottla.queue.record import HEADER, HEADER_BYTES, MAGIC, MAX_BODY_BYTES, OBJECT, TEXT

try:
    import cython
except ImportError:
    from ottla.records.uncompiled import cython  # type: ignore[no-redef]

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.libc.string import memcpy
    from cython.cimports.ottla.queue.numbers import put_decimal, put_little_endian

IS_COMPILED = cython.compiled

_crc32 = cython.declare(object, checksums.iso_hdlc)
_HEADER_BYTES = cython.declare(cython.Py_ssize_t, HEADER_BYTES)
_MAX_NAME_BYTES = cython.declare(cython.Py_ssize_t, MAX_NAME_BYTES)
_MAX_BODY_BYTES = cython.declare(cython.Py_ssize_t, MAX_BODY_BYTES)
_TEXT = cython.declare(cython.uchar, TEXT)
_OBJECT = cython.declare(cython.uchar, OBJECT)
_MAGIC = cython.declare(cython.uint, MAGIC)


def kind_of(message: object) -> cython.uchar:
    """The type of a message in its header."""
    return _TEXT if isinstance(message, str) else _OBJECT


def body_of(message: object, extra_bytes: cython.Py_ssize_t) -> bytes:
    """The body of a message, which takes `extra_bytes` more in a part."""
    body: bytes
    if type(message) is bytes:
        body = message
    elif isinstance(message, str):
        body = message.encode()
    else:
        body = bytes(memoryview(message))  # type: ignore[arg-type]  # a TypeError otherwise
    if len(body) + extra_bytes > _MAX_BODY_BYTES:
        raise NotReady(f"a message is limited to {_MAX_BODY_BYTES - extra_bytes} bytes, got {len(body)}")
    return body


def encode(offset: cython.ulonglong, number: cython.uint, kind: cython.uchar, body: bytes) -> bytes:
    """A message as stored in a part: header and body."""
    if cython.compiled:
        size: cython.Py_ssize_t = len(body)
        record: bytes = PyBytes_FromStringAndSize(cython.NULL, _HEADER_BYTES + size)
        start: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(record))
        put_little_endian(start, 0, offset, 8)
        put_little_endian(start, 8, size, 4)
        put_little_endian(start, 12, _MAGIC, 4)
        put_little_endian(start, 16, number, 4)
        start[20] = kind
        put_little_endian(start, 21, 0, 4)
        memcpy(start + _HEADER_BYTES, PyBytes_AS_STRING(body), size)
        put_little_endian(start, 21, _crc32(record), 4)
        return record
    else:
        unchecked = HEADER.pack(offset, len(body), _MAGIC, number, kind, 0)
        return HEADER.pack(offset, len(body), _MAGIC, number, kind, _crc32(unchecked + body)) + body


def push_line(name: bytes, right_edge: cython.ulonglong, count_pushed: cython.ulonglong) -> bytes:
    """The line of info_push: `name;right_edge;count_pushed;crc`."""
    text: bytes
    if cython.compiled:
        line = cython.declare(cython.uchar[192])  # three numbers take 63 of them at most
        size: cython.Py_ssize_t = len(name)
        if size > _MAX_NAME_BYTES:
            raise ValueError(f"a name is limited to {_MAX_NAME_BYTES} bytes, got {size}")
        memcpy(line, PyBytes_AS_STRING(name), size)
        line[size] = ord(";")
        size = put_decimal(line, size + 1, right_edge, ord(";"))
        size = put_decimal(line, size, count_pushed, ord(";"))
        text = PyBytes_FromStringAndSize(cython.cast(cython.p_char, line), size)
        size = put_decimal(line, size, _crc32(text), ord("\n"))
        return PyBytes_FromStringAndSize(cython.cast(cython.p_char, line), size)
    else:
        text = b"%b;%d;%d;" % (name, right_edge, count_pushed)
        return b"%b%d\n" % (text, _crc32(text))
