# cython: language_level=3, boundscheck=False, cdivision=True
"""Several appends to a log at once, in C: checked and placed one by one, written together, published together.

This is `PartitionLog.append` for the usual batch and the usual log, and nothing else: a batch that would be rejected,
roll a segment, begin an epoch, or start a producer is REFUSED, before anything has changed, and is then appended by
`PartitionLog.append`, which is also all there is without a C compiler. The same holds for a write that fails: nothing
was published, and the next write overwrites its remains. tests/broker/test_fast_produce.py compares the two.
"""

from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.buffer cimport PyBUF_READ
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcmp
from posix.unistd cimport pwrite

from ottla.records.big_endian cimport get_int16, get_int32, get_int64, get_uint32, put_uint32
from ottla.records.checksum import crc32c as _crc32c
from ottla.storage.producers.state import ProducedBatch as _ProducedBatch

cdef extern from "<sys/uio.h>" nogil:
    ssize_t pwritev(int fd, const iovec* buffers, int count, long long position)

cdef object crc32c = _crc32c
cdef object ProducedBatch = _ProducedBatch

cdef enum:
    HEADER_BYTES = 61
    LENGTH_STARTS_AT = 12
    CHECKSUM_STARTS_AT = 21
    MAGIC = 2
    COMPRESSION_MASK = 0x07
    LZ4 = 3
    HIGHEST_COMPRESSION = 4
    LOG_APPEND_TIME = 0x08
    TRANSACTIONAL = 0x10
    CONTROL = 0x20
    SMALLEST_RECORD_BYTES = 7
    LZ4_FLAGS_AT = 65
    LZ4_INDEPENDENT_BLOCKS = 0x20
    HIGHEST_SEQUENCE = 0x7FFFFFFF
    MOST_PENDING = 256
    REMEMBERED_BATCHES = 5

cdef int64_t HIGHEST_BASE_OFFSET = 0x7FFFFFFF00000000
cdef int64_t MAX_RELATIVE_OFFSET = 0x7FFFFFFF


cdef class PendingAppends:
    """Used for one log after another: `begin`, then `add` for each batch, `write`, and `publish`."""

    cdef bint begin(self, object log, object leader_epoch) except -1:
        """Look at the end of this log; returns whether batches can be appended here."""
        cdef object segments, segment, indexes, entries, fd
        self.count = 0
        self.producer = None
        self.producer_id = -1
        config = log.config
        if config is not self.config:
            self.use_config(config)
        if not self.is_config_simple or log._offline is not None or log.cipher is not None:
            return False
        self.log = log
        segments = log.segments
        self.segment = segment = segments.active
        self.indexes = indexes = segment.indexes
        entries = log.epochs.entries
        if not entries or leader_epoch > entries[-1][0]:
            return False
        self.leader_epoch = leader_epoch
        self.size = segment.size
        self.first_timestamp = segments._first_timestamp
        # An empty segment, or one whose age is not told by its records.
        if self.size == 0 or self.first_timestamp < 0:
            return False
        fd = segment._fd
        if fd is None:
            return False
        self.fd = fd
        self.base_offset = segment.base_offset
        self.index_room = indexes.room
        self.next_offset = log.next_offset
        self.start_offset = log.start_offset
        self.now_ms = log._clock.now_ms()
        return True

    cdef int use_config(self, object config) except -1:
        self.config = config
        self.is_config_simple = config.cleanup_policy == "delete" and config.message_timestamp_type == "CreateTime"
        self.most_bytes = min(config.max_message_bytes, config.segment_bytes)
        self.segment_bytes = config.segment_bytes
        self.segment_ms = min(config.segment_ms, 1 << 62)
        self.interval_bytes = config.index_interval_bytes
        self.after_max_ms = min(config.message_timestamp_after_max_ms, 1 << 62)
        self.before_max_ms = min(config.message_timestamp_before_max_ms, 1 << 62)
        return 0

    cdef Taken add(self, uint8_t* batch, int64_t size) except *:
        """Check a batch, and assign its offsets. LATER: after what is pending has been written."""
        cdef int16_t attributes
        cdef int32_t delta, sequence
        cdef int64_t base_timestamp, max_timestamp, oldest, producer_id
        cdef Taken taken
        cdef Pending* pending
        if size < HEADER_BYTES or size > self.most_bytes or batch[16] != MAGIC:
            return REFUSED
        delta = get_int32(batch, 23)
        attributes = get_int16(batch, 21)
        if (get_int32(batch, 8) != size - LENGTH_STARTS_AT or delta < 0 or get_int32(batch, 57) - 1 != delta
                or not 0 <= get_int64(batch, 0) <= HIGHEST_BASE_OFFSET):
            return REFUSED
        if (attributes & (CONTROL | TRANSACTIONAL | LOG_APPEND_TIME)
                or attributes & COMPRESSION_MASK > HIGHEST_COMPRESSION):
            return REFUSED
        if attributes & COMPRESSION_MASK == 0:
            if delta >= (size - HEADER_BYTES) // SMALLEST_RECORD_BYTES:
                return REFUSED
        elif attributes & COMPRESSION_MASK == LZ4 and has_linked_blocks(batch, size):
            return REFUSED
        base_timestamp = get_int64(batch, 27)
        max_timestamp = get_int64(batch, 35)
        # Without a timestamp, or with one that is far off, there is more to decide.
        if max_timestamp < 0 or max_timestamp - self.now_ms > self.after_max_ms:
            return REFUSED
        oldest = base_timestamp if 0 <= base_timestamp < max_timestamp else max_timestamp
        if self.now_ms - oldest > self.before_max_ms:
            return REFUSED
        if (self.size + size > self.segment_bytes or max_timestamp - self.first_timestamp > self.segment_ms
                or self.next_offset + delta - self.base_offset > MAX_RELATIVE_OFFSET):
            return REFUSED
        # Each batch may add an index entry. If one makes the index full, the next batch rolls the segment.
        if self.count >= self.index_room or self.count == MOST_PENDING:
            return LATER if self.count else REFUSED
        producer_id = get_int64(batch, 43)
        sequence = get_int32(batch, 53)
        if producer_id >= 0 or self.producer is not None:
            taken = self.follow_producer(producer_id, get_int16(batch, 51), sequence, delta)
            if taken != TAKEN:
                return taken
        if checksum(batch, size) != get_uint32(batch, 17):
            return REFUSED
        pending = &self.pending[self.count]
        pending.base_offset = self.next_offset
        pending.last_offset = self.next_offset + delta
        pending.max_timestamp = max_timestamp
        pending.position = self.size
        pending.size = size
        pending.base_sequence = sequence
        pending.sequence_before = self.last_sequence
        self.buffers[self.count].iov_base = batch
        self.buffers[self.count].iov_len = size
        put_uint32(batch, 0, <uint32_t>(self.next_offset >> 32))
        put_uint32(batch, 4, <uint32_t>(self.next_offset & 0xFFFFFFFF))
        put_uint32(batch, 12, <uint32_t>self.leader_epoch)
        self.count += 1
        self.last_base_offset = self.next_offset
        self.next_offset += delta + 1
        self.size += size
        if producer_id >= 0:
            self.last_sequence = sequence + delta
        return TAKEN

    cdef Taken follow_producer(self, int64_t producer_id, int32_t epoch, int32_t sequence, int32_t delta) except *:
        """TAKEN for the next batch of a producer that is known here, in the same epoch and without a transaction."""
        cdef object producer, batches, last
        if self.producer_id != producer_id:
            if self.count:
                return LATER  # one producer at a time, or none
            producer = self.log.producers.producers.get(producer_id)
            if producer is None or producer.transaction_start >= 0:
                return REFUSED
            batches = producer.batches
            if not batches:
                return REFUSED
            last = batches[-1]
            self.last_sequence = last.last_sequence
            if last is not self.last_produced and has_wrapped(batches, self.last_sequence):
                return REFUSED
            self.producer = producer
            self.producer_id = producer_id
            self.producer_epoch = producer.epoch
        if epoch != self.producer_epoch or self.last_sequence < 0 or self.last_sequence > HIGHEST_SEQUENCE - delta - 1:
            return REFUSED
        return TAKEN if sequence == self.last_sequence + 1 else REFUSED

    cdef void undo(self) noexcept:
        """Forget the last batch, which is then appended later, or not at all."""
        cdef Pending* pending
        self.count -= 1
        pending = &self.pending[self.count]
        self.size = pending.position
        self.next_offset = pending.base_offset
        self.last_sequence = pending.sequence_before

    cdef bint write(self) noexcept:
        """Write the pending batches behind the published end; returns whether all of them were written."""
        cdef int64_t position, size
        cdef ssize_t written
        if self.count == 0:
            return True
        position = self.pending[0].position
        size = self.size - position
        # Without the lock of the interpreter: the write may have to wait for the disk.
        with nogil:
            if self.count == 1:
                written = pwrite(self.fd, self.buffers[0].iov_base, self.buffers[0].iov_len, position)
            else:
                written = pwritev(self.fd, self.buffers, self.count, position)
        return written == size

    cdef int64_t publish(self) except -1:
        """Add the written batches to the indexes, and make them visible; returns their size."""
        cdef object indexes = self.indexes
        cdef int64_t bytes_since_entry, max_timestamp
        cdef Pending* pending
        cdef int number
        if self.count == 0:
            return 0
        bytes_since_entry = indexes._bytes_since_entry
        max_timestamp = indexes._max_timestamp
        for number in range(self.count):
            pending = &self.pending[number]
            if pending.max_timestamp > max_timestamp:
                max_timestamp = pending.max_timestamp
                indexes._max_timestamp = max_timestamp
                indexes._max_timestamp_offset = pending.last_offset
            if bytes_since_entry > self.interval_bytes:
                indexes.add_entry(pending.position, pending.last_offset, self.config)
                bytes_since_entry = 0
            bytes_since_entry += pending.size
        indexes._bytes_since_entry = bytes_since_entry
        # Published last: a reader that sees `size` or `next_offset` may read every byte below.
        self.segment.size = self.size
        if self.producer is not None:
            self.note_produced()
        self.log.next_offset = self.next_offset
        return self.size - self.pending[0].position

    cdef int note_produced(self) except -1:
        cdef Pending* pending
        cdef int32_t delta
        cdef int number
        batches = self.producer.batches
        for number in range(max(self.count - REMEMBERED_BATCHES, 0), self.count):
            pending = &self.pending[number]
            delta = <int32_t>(pending.last_offset - pending.base_offset)
            batches.append(ProducedBatch(
                pending.base_sequence, pending.base_sequence + delta, pending.last_offset, delta, pending.max_timestamp
            ))
        self.producer.last_timestamp = pending.max_timestamp
        self.last_produced = batches[-1]
        return 0


cdef bint has_wrapped(object batches, int32_t last_sequence) except -1:
    """Whether sequence numbers wrapped around: then the next one alone does not tell a duplicate."""
    for batch in batches:
        if batch.base_sequence > last_sequence:
            return True
    return False


cdef uint32_t checksum(uint8_t* batch, int64_t size) except? 0:
    return crc32c(PyMemoryView_FromMemory(<char*>batch + CHECKSUM_STARTS_AT, size - CHECKSUM_STARTS_AT, PyBUF_READ))


cdef bint has_linked_blocks(uint8_t* batch, int64_t size) noexcept:
    """From the flags of the LZ4 frame."""
    return (
        size > LZ4_FLAGS_AT
        and memcmp(batch + HEADER_BYTES, <const char*>b"\x04\x22\x4d\x18", 4) == 0
        and not batch[LZ4_FLAGS_AT] & LZ4_INDEPENDENT_BLOCKS
    )
