# C types for murmur2.py.
cdef unsigned int hash_of(const unsigned char* data, Py_ssize_t length) noexcept
cpdef int partition_of(bytes key, int partitions) except -1
