# Numbers in queue files. There is no .py module: without a C compiler, struct and % do this.


cdef inline void put_little_endian(unsigned char* data, Py_ssize_t at, unsigned long long value, int width) noexcept:
    cdef int i
    for i in range(width):
        data[at + i] = (value >> (8 * i)) & 0xFF


# Followed by this byte; returns the position after it.
cdef inline Py_ssize_t put_decimal(
    unsigned char* data, Py_ssize_t at, unsigned long long value, unsigned char then
) noexcept:
    cdef unsigned char digits[20]
    cdef int count = 0
    while True:
        digits[count] = 48 + value % 10
        count += 1
        value = value // 10
        if value == 0:
            break
    while count > 0:
        count -= 1
        data[at] = digits[count]
        at += 1
    data[at] = then
    return at + 1
