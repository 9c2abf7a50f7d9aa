# Big-endian integers. There is no .py module: without a C compiler, struct does this.


cdef inline unsigned int get_uint32(const unsigned char* data, Py_ssize_t at) noexcept:
    cdef unsigned int high = data[at]
    return (high << 24) | (data[at + 1] << 16) | (data[at + 2] << 8) | data[at + 3]


cdef inline int get_int32(const unsigned char* data, Py_ssize_t at) noexcept:
    return <int>get_uint32(data, at)


cdef inline short get_int16(const unsigned char* data, Py_ssize_t at) noexcept:
    return <short>((data[at] << 8) | data[at + 1])


cdef inline long long get_int64(const unsigned char* data, Py_ssize_t at) noexcept:
    cdef unsigned long long high = get_uint32(data, at)
    return <long long>((high << 32) | get_uint32(data, at + 4))


cdef inline void put_uint32(unsigned char* data, Py_ssize_t at, unsigned int value) noexcept:
    data[at] = (value >> 24) & 0xFF
    data[at + 1] = (value >> 16) & 0xFF
    data[at + 2] = (value >> 8) & 0xFF
    data[at + 3] = value & 0xFF
