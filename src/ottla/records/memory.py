"""Foreign memory, as bytes and as integers in native byte order.

Compiled by Cython with the C types in memory.pxd if a C compiler is available, otherwise run as plain Python.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

try:
    import cython
except ImportError:
    from ottla.records.uncompiled import cython  # type: ignore[no-redef]

if cython.compiled:
    from cython.cimports.cpython.buffer import (
        PyBUF_SIMPLE,
        PyBUF_WRITABLE,
        PyBuffer_Release,
        PyObject_GetBuffer,
    )
else:
    from ottla.records.uncompiled import flat

    _INT = struct.Struct("=i")
    _LONG = struct.Struct("=q")

if TYPE_CHECKING:
    from collections.abc import Callable


class Memory:
    def __init__(self, source: object, *, is_writable: bool) -> None:
        if cython.compiled:
            if self.is_held:
                raise RuntimeError("this memory is already acquired")
            PyObject_GetBuffer(source, cython.address(self.view), PyBUF_WRITABLE if is_writable else PyBUF_SIMPLE)
            self.is_held = True
            self.size = self.view.len
            self.bytes = cython.cast(cython.p_uchar, self.view.buf)
        else:
            self.bytes = flat(source, is_writable=is_writable)
            self.size = len(self.bytes)
        self.source = source

    def __dealloc__(self) -> None:
        if cython.compiled and self.is_held:
            PyBuffer_Release(cython.address(self.view))


def room(allocate: Callable[[int], Any], size: cython.Py_ssize_t) -> Memory:
    """A buffer of at least this size from the caller's allocator."""
    memory: Memory = Memory(allocate(size), is_writable=True)
    if memory.size < size:
        raise ValueError(f"the allocator returned {memory.size} bytes instead of {size}")
    return memory


if not cython.compiled:  # memory.pxd has these four for C

    def get_int(data: memoryview, i: int) -> int:
        number: int = _INT.unpack_from(data, 4 * i)[0]
        return number

    def get_long(data: memoryview, i: int) -> int:
        number: int = _LONG.unpack_from(data, 8 * i)[0]
        return number

    def put_int(data: memoryview, i: int, value: int) -> None:
        _INT.pack_into(data, 4 * i, value)

    def put_long(data: memoryview, i: int, value: int) -> None:
        _LONG.pack_into(data, 8 * i, value)
