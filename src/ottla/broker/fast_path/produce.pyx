# cython: language_level=3, boundscheck=False, cdivision=True
"""The usual produce requests: a run of them is parsed and checked, written, published and acknowledged together."""

from libc.string cimport memcpy

from ottla.broker.fast_path.wire cimport (
    Cursor,
    bit_length,
    left,
    put_byte,
    put_count,
    put_int32,
    put_int64,
    put_topic,
    take_header,
    take_int32,
    take_length,
    take_no_tags,
    take_topic,
)
from ottla.records.big_endian cimport get_int16, get_int32
from ottla.storage.pending_appends cimport TAKEN, PendingAppends

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
    MOST_PARTITIONS = 16
    MOST_PARTS = 64
    # A response without names of topics, and what it takes per topic and partition, at most.
    RESPONSE_BYTES = 32
    TOPIC_BYTES = 16
    PARTITION_BYTES = 48


cdef class FastProduce:
    def __init__(self, Partitions partitions, Answers answers, stats, Py_ssize_t max_frame_bytes):
        self.partitions = partitions
        self.answers = answers
        self.stats = stats
        self.max_frame_bytes = max_frame_bytes
        self.appends = [PendingAppends()]
        self.used = [None] * MOST_PARTITIONS

    cdef Py_ssize_t run(self, uint8_t* data, Py_ssize_t count) except -1:
        """Answer requests as far as they can be written together; returns their size."""
        cdef Py_ssize_t used = 0
        cdef Py_ssize_t answered = self.answers.size
        cdef Py_ssize_t size
        cdef int requests = 0
        cdef int number
        cdef int64_t written
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
                self.answers.size = answered
                return 0
        for number in range(self.used_count):
            written = (<PendingAppends>self.appends[number]).publish()
            partition = self.used[number]
            if partition.waits:
                partition.role.appended(written)
        self.count_requests(requests, used - 4 * requests, self.answers.size - answered, perf_counter_ns() - began_ns)
        return used

    cdef int count_requests(self, int requests, int64_t bytes_in, int64_t bytes_out, int64_t elapsed_ns) except -1:
        """As `Dispatcher.answer` does; each request takes its part of the time."""
        cdef object stats = self.stats
        stats.bytes_in += bytes_in
        stats.bytes_out += bytes_out
        stats.by_bits[bit_length(elapsed_ns // requests)] += requests
        stats.total_ns += elapsed_ns
        return 0

    cdef bint take(self, uint8_t* frame, Py_ssize_t size) except -1:
        """Make this request part of the run, and write its response; returns whether it can be."""
        cdef Request* request = &self.request
        cdef Topic* topic
        cdef Part* part
        cdef PendingAppends appends
        cdef int number, done, topic_number
        cdef int used_before = self.used_count
        cdef int[64] used_by
        cdef int64_t[64] offsets
        cdef int64_t[64] starts
        if not parse(request, frame, size):
            return False
        topic_number = 0
        for number in range(request.part_count):
            if number == request.topics[topic_number].end_part:
                topic_number += 1
            part = &request.parts[number]
            used_by[number] = self.use(&request.topics[topic_number], part)
            if used_by[number] >= 0:
                appends = <PendingAppends>self.appends[used_by[number]]
                if appends.add(part.records, part.size) == TAKEN:
                    offsets[number] = appends.last_base_offset
                    starts[number] = appends.start_offset
                    continue
            for done in range(number - 1, -1, -1):
                (<PendingAppends>self.appends[used_by[done]]).undo()
            self.used_count = used_before
            return False
        if request.acks != 0:
            self.respond(offsets, starts)
        return True

    cdef int use(self, Topic* topic, Part* part) except -2:
        """The number of the appends to this partition in this run; -1 if there can be none."""
        cdef PendingAppends appends
        cdef int number
        partition = self.partitions.find(topic.key, topic.size, part.index, self.request.version >= BY_ID_SINCE)
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

    cdef int respond(self, int64_t* offsets, int64_t* starts) except -1:
        cdef Request* request = &self.request
        cdef Topic* topic
        cdef Py_ssize_t room = RESPONSE_BYTES
        cdef bint is_flexible = request.version >= FLEXIBLE_SINCE
        cdef uint8_t* begin
        cdef uint8_t* at
        cdef int number, part
        for number in range(request.topic_count):
            topic = &request.topics[number]
            room += TOPIC_BYTES + topic.size + PARTITION_BYTES * (topic.end_part - topic.first_part)
        begin = self.answers.end_with_room(room)
        memcpy(begin + 4, request.correlation_id, 4)
        at = begin + 8
        if is_flexible:
            at = put_byte(at, 0)
        at = put_count(at, request.topic_count, is_flexible)
        for number in range(request.topic_count):
            topic = &request.topics[number]
            at = put_topic(at, topic.key, topic.size, is_flexible, request.version >= BY_ID_SINCE)
            at = put_count(at, topic.end_part - topic.first_part, is_flexible)
            for part in range(topic.first_part, topic.end_part):
                at = put_result(at, request.version, request.parts[part].index, offsets[part], starts[part])
            if is_flexible:
                at = put_byte(at, 0)
        at = put_int32(at, 0)  # the throttle time
        if is_flexible:
            at = put_byte(at, 0)
        put_int32(begin, <int32_t>(at - begin - 4))
        self.answers.size += at - begin
        return 0


cdef object usable_log(object partition):
    """The log of a partition whose appends need nothing but a write to be acknowledged; otherwise None."""
    if type(partition.role) is not Standalone or partition.intake is not None or partition.is_synced_first:
        return None
    return partition._log


cdef uint8_t* put_result(uint8_t* at, int16_t version, int32_t index, int64_t offset, int64_t log_start) noexcept:
    at = put_int32(at, index)
    at[0] = at[1] = 0  # no error
    at = put_int64(at + 2, offset)
    at = put_int64(at, -1)  # no append time
    if version >= LOG_START_SINCE:
        at = put_int64(at, log_start)
    if version >= FLEXIBLE_SINCE:
        at[0] = 1  # no record errors
        at[1] = 0  # no error message
        at[2] = 0
        at += 3
    elif version >= RECORD_ERRORS_SINCE:
        at = put_int32(at, 0)
        at[0] = at[1] = 0xFF
        at += 2
    return at


cdef bint parse(Request* request, uint8_t* frame, Py_ssize_t size) noexcept:
    """Whether it is a produce request without a transaction and without anything unknown; its parts, if so."""
    cdef Cursor cursor
    cdef int64_t count
    cdef int number
    if size < 10 or get_int16(frame, 0) != PRODUCE:
        return False
    request.version = get_int16(frame, 2)
    if not FIRST_VERSION <= request.version <= LAST_VERSION:
        return False
    request.correlation_id = frame + 4
    cursor.is_flexible = request.version >= FLEXIBLE_SINCE
    if not take_header(&cursor, frame, size) or not take_no_transaction(&cursor) or left(&cursor) < 6:
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


cdef bint take_no_transaction(Cursor* cursor) noexcept:
    cdef int size = 1 if cursor.is_flexible else 2
    if left(cursor) < size:
        return False
    cursor.at += size
    return cursor.at[-1] == 0 if cursor.is_flexible else get_int16(cursor.at - 2, 0) == -1


cdef bint parse_topic(Request* request, Topic* topic, Cursor* cursor) noexcept:
    cdef int64_t count
    cdef int number
    if not take_topic(cursor, request.version >= BY_ID_SINCE, &topic.key, &topic.size):
        return False
    count = take_length(cursor)
    if count < 1 or count > MOST_PARTS - request.part_count:
        return False
    topic.first_part = request.part_count
    for number in range(<int>count):
        if not parse_part(&request.parts[request.part_count], cursor):
            return False
        request.part_count += 1
    topic.end_part = request.part_count
    return take_no_tags(cursor)


cdef bint parse_part(Part* part, Cursor* cursor) noexcept:
    cdef int64_t length
    if left(cursor) < 4:
        return False
    part.index = take_int32(cursor)
    length = take_length(cursor)
    if length < 1 or length > left(cursor):
        return False
    part.records = cursor.at
    part.size = <int32_t>length
    cursor.at += length
    return take_no_tags(cursor)
