# C types for encode.py.
cpdef unsigned char kind_of(object message) noexcept
cpdef bytes body_of(object message, Py_ssize_t extra_bytes)
cpdef bytes encode(unsigned long long offset, unsigned int number, unsigned char kind, bytes body)
cpdef bytes push_line(bytes name, unsigned long long right_edge, unsigned long long count_pushed)
