# C types for memory.py.
from cpython.buffer cimport Py_buffer
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy
cimport cython


@cython.final
cdef class Memory:
    cdef object source
    cdef Py_ssize_t size
    cdef Py_buffer view
    cdef bint is_held
    cdef unsigned char* bytes


cdef Memory room(object allocate, Py_ssize_t size)


# Buffers may be unaligned, so integers are copied in and out, at no cost.
cdef inline int32_t get_int(const unsigned char* data, Py_ssize_t i) noexcept:
    cdef int32_t value
    memcpy(&value, data + 4 * i, 4)
    return value


cdef inline int64_t get_long(const unsigned char* data, Py_ssize_t i) noexcept:
    cdef int64_t value
    memcpy(&value, data + 8 * i, 8)
    return value


cdef inline void put_int(unsigned char* data, Py_ssize_t i, int32_t value) noexcept:
    memcpy(data + 4 * i, &value, 4)


cdef inline void put_long(unsigned char* data, Py_ssize_t i, int64_t value) noexcept:
    memcpy(data + 8 * i, &value, 8)
