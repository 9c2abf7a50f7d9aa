# cython: language_level=3, boundscheck=False, cdivision=True
"""Answers the usual produce requests in C, from the received bytes to the bytes of the responses.

A run of pipelined requests is parsed and checked; its batches are written, with one system call per partition; and
then they are published and acknowledged together. Whatever is unusual ends the run before it, and is left to
`Dispatcher.answer` and its handlers, as if this did not exist: another API, an invalid request, a request that would
be rejected, a transaction, or a partition whose batches need more than appending. Nothing has changed then.

The conditions, from the widest to the narrowest:
- the produce handler has no wrapper: no ACLs, quotas, auditing, tracing, fault injection (`Dispatcher.reload_handlers`);
- the listener has no authentication (`Listener`), and the connection nothing to do before (`Connection`);
- the partition is the only copy, not internal, and its log is open; appends are acknowledged unsynced, and batches
  are stored as they came (`usable_log`);
- the log is neither encrypted nor compacted, and has the timestamps of its producers (`PendingAppends.begin`);
- the batch is valid, and follows the last one of its producer in the same segment (`PendingAppends.add`).
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy

from ottla.records.big_endian cimport get_int16, get_int32, put_uint32
from ottla.storage.pending_appends cimport LATER, REFUSED, TAKEN, PendingAppends, Taken

from time import perf_counter_ns as _perf_counter_ns

from ottla.broker.roles import Standalone as _Standalone

cdef object perf_counter_ns = _perf_counter_ns
cdef object Standalone = _Standalone

cdef enum:
    PRODUCE = 0
    FIRST_VERSION = 3
    LAST_VERSION = 13
    LOG_START_SINCE = 5
    RECORD_ERRORS_SINCE = 8
    FLEXIBLE_SINCE = 9
    BY_ID_SINCE = 13
    UUID_BYTES = 16
    INDEX_BYTES = 4
    MOST_PARTITIONS = 16
    MOST_PARTS = 64
    MOST_KEYS = 4096
    # A response without names of topics, and what it takes per topic and partition, at most.
    RESPONSE_BYTES = 32
    TOPIC_BYTES = 16
    PARTITION_BYTES = 48


cdef struct Part:
    const uint8_t* key
    Py_ssize_t key_bytes
    uint8_t* records
    int32_t records_bytes
    int32_t index


cdef struct Topic:
    const uint8_t* key
    Py_ssize_t key_bytes
    int first_part
    int end_part


cdef struct Request:
    int16_t version
    int16_t acks
    const uint8_t* correlation_id
    int topic_count
    int part_count
    Topic[64] topics
    Part[64] parts


cdef class FastPath:
    """Of one listener. `serve` may be called with any bytes that begin with a frame."""

    cdef object topics
    cdef object stats
    cdef Py_ssize_t max_frame_bytes
    cdef object version
    cdef dict partitions
    """Partitions by name or id of the topic as on the wire, index, and which of the two it is."""
    cdef bytes last_key
    cdef object last_partition
    cdef list appends
    cdef list used
    cdef int used_count
    cdef Request request
    cdef uint8_t* answers
    cdef Py_ssize_t answer_bytes
    cdef Py_ssize_t answer_room

    def __cinit__(self):
        self.answers = NULL

    def __init__(self, topics, stats, Py_ssize_t max_frame_bytes):
        self.topics = topics
        self.stats = stats
        self.max_frame_bytes = max_frame_bytes
        self.version = None
        self.partitions = {}
        self.last_key = b""
        self.appends = [PendingAppends() for _ in range(1)]
        self.used = [None] * MOST_PARTITIONS
        self.used_count = 0
        self.answer_room = 4096
        self.answers = <uint8_t*>malloc(self.answer_room)
        if self.answers == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.answers)

    def serve(self, data, Py_ssize_t count, /):
        """Answer the first of these requests, as far as they are usual; returns the size of those.

        `take_answers` then has the responses.
        """
        cdef Py_buffer view
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t used
        self.answer_bytes = 0
        PyObject_GetBuffer(data, &view, PyBUF_WRITABLE)
        try:
            while True:
                used = self.run(<uint8_t*>view.buf + at, min(count, view.len) - at)
                if used == 0:
                    return at
                at += used
        finally:
            self.used_count = 0
            PyBuffer_Release(&view)

    def take_answers(self):
        return PyBytes_FromStringAndSize(<char*>self.answers, self.answer_bytes)

    cdef Py_ssize_t run(self, uint8_t* data, Py_ssize_t count) except -1:
        """Answer requests as far as they can be written together; returns their size."""
        cdef Py_ssize_t used = 0
        cdef Py_ssize_t answered = self.answer_bytes
        cdef Py_ssize_t size
        cdef int requests = 0
        cdef int number
        cdef int64_t written
        if count < 14 or get_int16(data, 4) != PRODUCE:
            return 0
        began_ns = perf_counter_ns()
        self.used_count = 0
        while count - used >= 4:
            size = get_int32(data, used)
            if size > self.max_frame_bytes or size > count - used - 4 or not self.take(data + used + 4, size):
                break
            requests += 1
            used += size + 4
        if used == 0:
            return 0
        for number in range(self.used_count):
            if not (<PendingAppends>self.appends[number]).write():
                # Nothing is published: the handler tries again, and knows what a failed write means.
                self.answer_bytes = answered
                return 0
        for number in range(self.used_count):
            written = (<PendingAppends>self.appends[number]).publish()
            partition = self.used[number]
            if partition.waits:
                partition.role.appended(written)
        self.count_requests(requests, used - 4 * requests, self.answer_bytes - answered, perf_counter_ns() - began_ns)
        return used

    cdef int count_requests(self, int requests, int64_t bytes_in, int64_t bytes_out, int64_t elapsed_ns) except -1:
        """As `Dispatcher.answer` does; each request takes its part of the time."""
        cdef object stats = self.stats
        cdef int64_t each_ns = elapsed_ns // requests
        cdef int bits = 0
        while each_ns:
            each_ns >>= 1
            bits += 1
        stats.bytes_in += bytes_in
        stats.bytes_out += bytes_out
        stats.by_bits[bits] += requests
        stats.total_ns += elapsed_ns
        return 0

    cdef bint take(self, uint8_t* frame, Py_ssize_t size) except -1:
        """Make this request part of the run, and write its response; returns whether it can be."""
        cdef Request* request = &self.request
        cdef Part* part
        cdef PendingAppends appends
        cdef Py_ssize_t answered = self.answer_bytes
        cdef int number, done
        cdef int used_before = self.used_count
        cdef int[64] used_by
        cdef int64_t[64] offsets
        cdef int64_t[64] starts
        if not parse(request, frame, size):
            return False
        for number in range(request.part_count):
            part = &request.parts[number]
            used_by[number] = self.use(part)
            if used_by[number] >= 0:
                appends = <PendingAppends>self.appends[used_by[number]]
                if appends.add(part.records, part.records_bytes) == TAKEN:
                    offsets[number] = appends.last_base_offset
                    starts[number] = appends.start_offset
                    continue
            for done in range(number - 1, -1, -1):
                (<PendingAppends>self.appends[used_by[done]]).undo()
            self.used_count = used_before
            return False
        if request.acks != 0:
            self.respond(request, offsets, starts)
        return True

    cdef int use(self, Part* part) except -2:
        """The number of the appends to this partition in this run; -1 if there can be none."""
        cdef PendingAppends appends
        cdef int number
        partition = self.find(part)
        if partition is None:
            return -1
        for number in range(self.used_count):
            if self.used[number] is partition:
                return number
        if self.used_count == MOST_PARTITIONS:
            return -1
        log = usable_log(partition)
        if log is None:
            return -1
        if self.used_count == len(self.appends):
            self.appends.append(PendingAppends())
        appends = <PendingAppends>self.appends[self.used_count]
        if not appends.begin(log, partition.leader_epoch):
            return -1
        self.used[self.used_count] = partition
        self.used_count += 1
        return self.used_count - 1

    cdef object find(self, Part* part):
        """The partition, or None."""
        cdef bytes key
        cdef const uint8_t* last
        cdef uint8_t[5] index
        if self.version != self.topics.version:
            self.version = self.topics.version
            self.partitions.clear()
            self.last_key = b""
        last = self.last_key
        if (len(self.last_key) == part.key_bytes + INDEX_BYTES + 1 and memcmp(last, part.key, part.key_bytes) == 0
                and get_int32(last, part.key_bytes) == part.index
                and last[part.key_bytes + INDEX_BYTES] == (self.request.version >= BY_ID_SINCE)):
            return self.last_partition
        put_uint32(index, 0, <uint32_t>part.index)
        index[INDEX_BYTES] = self.request.version >= BY_ID_SINCE
        key = PyBytes_FromStringAndSize(<const char*>part.key, part.key_bytes)
        key += PyBytes_FromStringAndSize(<const char*>index, INDEX_BYTES + 1)
        partition = self.partitions.get(key)
        if partition is None:
            partition = self.look_up(key[:part.key_bytes], part.index)
            if partition is None:
                return None
            if len(self.partitions) >= MOST_KEYS:
                self.partitions.clear()
            self.partitions[key] = partition
        self.last_key = key
        self.last_partition = partition
        return partition

    cdef object look_up(self, bytes key, int32_t index):
        cdef object state = None
        if self.request.version >= BY_ID_SINCE:
            state = self.topics.by_id.get(key)
        elif key.isascii():
            state = self.topics.by_name.get(key.decode())
        if state is None or not 0 <= index < len(state.partitions) or state.entry.is_internal:
            return None
        return state.partitions[index]

    cdef int respond(self, Request* request, int64_t* offsets, int64_t* starts) except -1:
        cdef Topic* topic
        cdef Py_ssize_t room = RESPONSE_BYTES
        cdef bint is_flexible = request.version >= FLEXIBLE_SINCE
        cdef uint8_t* begin
        cdef uint8_t* at
        cdef int number, part
        for number in range(request.topic_count):
            topic = &request.topics[number]
            room += TOPIC_BYTES + topic.key_bytes + PARTITION_BYTES * (topic.end_part - topic.first_part)
        self.make_room(room)
        begin = self.answers + self.answer_bytes
        memcpy(begin + 4, request.correlation_id, 4)
        at = begin + 8
        if is_flexible:
            at[0] = 0
            at += 1
        at = put_count(at, request.topic_count, is_flexible)
        for number in range(request.topic_count):
            topic = &request.topics[number]
            if request.version < FLEXIBLE_SINCE:
                at[0] = (topic.key_bytes >> 8) & 0xFF
                at[1] = topic.key_bytes & 0xFF
                at += 2
            elif request.version < BY_ID_SINCE:
                at = put_count(at, topic.key_bytes, True)
            memcpy(at, topic.key, topic.key_bytes)
            at = put_count(at + topic.key_bytes, topic.end_part - topic.first_part, is_flexible)
            for part in range(topic.first_part, topic.end_part):
                at = put_result(at, request.version, request.parts[part].index, offsets[part], starts[part])
            if is_flexible:
                at[0] = 0
                at += 1
        put_uint32(at, 0, 0)  # the throttle time
        at += 4
        if is_flexible:
            at[0] = 0
            at += 1
        put_uint32(begin, 0, <uint32_t>(at - begin - 4))
        self.answer_bytes += at - begin
        return 0

    cdef int make_room(self, Py_ssize_t room) except -1:
        cdef uint8_t* larger
        if self.answer_bytes + room > self.answer_room:
            larger = <uint8_t*>realloc(self.answers, 2 * (self.answer_bytes + room))
            if larger == NULL:
                raise MemoryError
            self.answers = larger
            self.answer_room = 2 * (self.answer_bytes + room)
        return 0


cdef object usable_log(object partition):
    """The log of a partition whose appends need nothing but a write to be acknowledged; otherwise None."""
    if type(partition.role) is not Standalone or partition.intake is not None or partition.is_synced_first:
        return None
    return partition._log


cdef uint8_t* put_count(uint8_t* at, uint32_t count, bint is_flexible) noexcept:
    if not is_flexible:
        put_uint32(at, 0, count)
        return at + 4
    count += 1
    while count >= 0x80:
        at[0] = <uint8_t>(count & 0x7F) | 0x80
        at += 1
        count >>= 7
    at[0] = <uint8_t>count
    return at + 1


cdef void put_int64(uint8_t* at, int64_t value) noexcept:
    put_uint32(at, 0, <uint32_t>(value >> 32))
    put_uint32(at, 4, <uint32_t>(value & 0xFFFFFFFF))


cdef uint8_t* put_result(uint8_t* at, int16_t version, int32_t index, int64_t offset, int64_t log_start) noexcept:
    put_uint32(at, 0, <uint32_t>index)
    at[4] = at[5] = 0  # no error
    put_int64(at + 6, offset)
    put_int64(at + 14, -1)  # no append time
    at += 22
    if version >= LOG_START_SINCE:
        put_int64(at, log_start)
        at += 8
    if version >= FLEXIBLE_SINCE:
        at[0] = 1  # no record errors
        at[1] = 0  # no error message
        at[2] = 0
        at += 3
    elif version >= RECORD_ERRORS_SINCE:
        put_uint32(at, 0, 0)
        at[4] = at[5] = 0xFF
        at += 6
    return at


cdef struct Cursor:
    uint8_t* at
    uint8_t* end
    bint is_flexible


cdef inline int64_t left(Cursor* cursor) noexcept:
    return cursor.end - cursor.at


cdef int64_t take_varint(Cursor* cursor) noexcept:
    """An unsigned varint of up to four bytes; -1 if there is none."""
    cdef int64_t value = 0
    cdef int shift = 0
    while shift < 28 and cursor.at < cursor.end:
        value |= <int64_t>(cursor.at[0] & 0x7F) << shift
        cursor.at += 1
        if cursor.at[-1] < 0x80:
            return value
        shift += 7
    return -1


cdef int64_t take_length(Cursor* cursor) noexcept:
    """The length of an array or of bytes; -1 for null, or if there is none."""
    cdef int64_t length
    if cursor.is_flexible:
        length = take_varint(cursor) - 1
    elif left(cursor) < 4:
        return -1
    else:
        length = get_int32(cursor.at, 0)
        cursor.at += 4
    return length if length >= 0 else -1


cdef bint take_no_tags(Cursor* cursor) noexcept:
    if not cursor.is_flexible:
        return True
    if left(cursor) < 1 or cursor.at[0] != 0:
        return False
    cursor.at += 1
    return True


cdef bint parse(Request* request, uint8_t* frame, Py_ssize_t size) noexcept:
    """Whether it is a produce request without a transaction and without anything unknown; its parts, if so."""
    cdef Cursor cursor
    cdef int64_t count
    cdef int16_t length
    cdef int number
    if size < 10 or get_int16(frame, 0) != PRODUCE:
        return False
    request.version = get_int16(frame, 2)
    if not FIRST_VERSION <= request.version <= LAST_VERSION:
        return False
    request.correlation_id = frame + 4
    cursor.at = frame + 10
    cursor.end = frame + size
    cursor.is_flexible = request.version >= FLEXIBLE_SINCE
    length = get_int16(frame, 8)
    if length < -1 or length > left(&cursor) or not is_ascii(cursor.at, length):
        return False
    if length > 0:
        cursor.at += length
    if not take_no_tags(&cursor) or not take_no_transaction(&cursor) or left(&cursor) < 6:
        return False
    request.acks = get_int16(cursor.at, 0)
    cursor.at += 6  # the timeout is for other replicas
    if not -1 <= request.acks <= 1:
        return False
    count = take_length(&cursor)
    if count < 1 or count > MOST_PARTS:
        return False
    request.topic_count = <int>count
    request.part_count = 0
    for number in range(request.topic_count):
        if not parse_topic(request, &request.topics[number], &cursor):
            return False
    return take_no_tags(&cursor) and cursor.at == cursor.end


cdef bint is_ascii(const uint8_t* text, int length) noexcept:
    cdef int at
    for at in range(length):
        if text[at] >= 0x80:
            return False
    return True


cdef bint take_no_transaction(Cursor* cursor) noexcept:
    cdef int size = 1 if cursor.is_flexible else 2
    if left(cursor) < size:
        return False
    cursor.at += size
    return cursor.at[-1] == 0 if cursor.is_flexible else get_int16(cursor.at, -2) == -1


cdef bint parse_topic(Request* request, Topic* topic, Cursor* cursor) noexcept:
    cdef int64_t count
    cdef int number
    if request.version >= BY_ID_SINCE:
        topic.key_bytes = UUID_BYTES
    elif cursor.is_flexible:
        topic.key_bytes = take_varint(cursor) - 1
    elif left(cursor) < 2:
        return False
    else:
        topic.key_bytes = get_int16(cursor.at, 0)
        cursor.at += 2
    if topic.key_bytes < 1 or topic.key_bytes > left(cursor):
        return False
    topic.key = cursor.at
    cursor.at += topic.key_bytes
    count = take_length(cursor)
    if count < 1 or count > MOST_PARTS - request.part_count:
        return False
    topic.first_part = request.part_count
    for number in range(<int>count):
        if not parse_part(&request.parts[request.part_count], topic, cursor):
            return False
        request.part_count += 1
    topic.end_part = request.part_count
    return take_no_tags(cursor)


cdef bint parse_part(Part* part, Topic* topic, Cursor* cursor) noexcept:
    cdef int64_t length
    if left(cursor) < 4:
        return False
    part.key = topic.key
    part.key_bytes = topic.key_bytes
    part.index = get_int32(cursor.at, 0)
    cursor.at += 4
    length = take_length(cursor)
    if length < 1 or length > left(cursor):
        return False
    part.records = cursor.at
    part.records_bytes = <int32_t>length
    cursor.at += length
    return take_no_tags(cursor)
