from libc.stdint cimport int32_t, int64_t, uint8_t
from posix.uio cimport iovec


cdef enum Taken:
    REFUSED
    TAKEN
    LATER


cdef struct Pending:
    int64_t base_offset
    int64_t last_offset
    int64_t max_timestamp
    int64_t position
    int64_t size
    int32_t base_sequence
    int32_t sequence_before


cdef class PendingAppends:
    cdef object log
    cdef object segment
    cdef object indexes
    cdef object config
    cdef object producer
    cdef object last_produced
    # The config, as C integers.
    cdef bint is_config_simple
    cdef int64_t most_bytes
    cdef int64_t segment_bytes
    cdef int64_t segment_ms
    cdef int64_t interval_bytes
    cdef int64_t after_max_ms
    cdef int64_t before_max_ms
    # The end of the log, including what is pending.
    cdef int fd
    cdef int64_t size
    cdef int64_t next_offset
    cdef int64_t base_offset
    cdef int64_t first_timestamp
    cdef int64_t now_ms
    cdef int64_t index_room
    cdef int32_t leader_epoch
    cdef int64_t producer_id
    cdef int32_t producer_epoch
    cdef int32_t last_sequence
    cdef readonly int64_t start_offset
    cdef int64_t last_base_offset
    cdef int count
    cdef Pending[256] pending
    cdef iovec[256] buffers

    cdef bint begin(self, object log, object partition_epoch) except -1
    cdef Taken add(self, uint8_t* batch, int64_t size) except *
    cdef void undo(self) noexcept
    cdef bint write(self) noexcept
    cdef int64_t publish(self) except -1
    cdef int note_produced(self) except -1
    cdef int use_config(self, object config) except -1
    cdef Taken follow_producer(self, int64_t producer_id, int32_t epoch, int32_t sequence, int32_t delta) except *
