# cython: language_level=3, boundscheck=False, cdivision=True
"""The usual fetch requests: of consumers without a fetch session, at the end of the log.

Such a request is answered from the end of the active segment, read into the response; or it waits, without a task,
and is then answered in one callback. A fetch that is far behind is left to the handler: most of its cost is in
copying records, not in Python.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uint32_t
from libc.string cimport memcmp, memcpy
from posix.unistd cimport pread

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
    take_string_length,
    take_topic,
)
from ottla.records.big_endian cimport get_int16, get_int32, get_int64

from asyncio import get_running_loop as _get_running_loop
from time import perf_counter_ns as _perf_counter_ns

from ottla.broker.roles import Standalone as _Standalone

cdef object get_running_loop = _get_running_loop
cdef object perf_counter_ns = _perf_counter_ns
cdef object Standalone = _Standalone

cdef enum:
    FETCH = 1
    FIRST_VERSION = 4
    LAST_VERSION = 18
    LOG_START_SINCE = 5
    SESSION_SINCE = 7
    LEADER_EPOCH_SINCE = 9
    RACK_SINCE = 11
    FLEXIBLE_SINCE = 12
    BY_ID_SINCE = 13
    REPLICA_STATE_SINCE = 15
    READ_COMMITTED = 1
    MOST_PARTS = 64
    MOST_BYTES = 65536
    MAX_WAIT_MS = 300000
    BATCH_HEADER_BYTES = 61
    # A response without names of topics and records, and what it takes per topic and partition, at most.
    RESPONSE_BYTES = 48
    TOPIC_BYTES = 16
    PARTITION_BYTES = 64

cdef int64_t HIGHEST_BASE_OFFSET = 0x7FFFFFFF00000000


cdef class FastFetch:
    def __init__(self, Partitions partitions, Answers answers, stats, held, int64_t most_bytes, max_frame_bytes):
        self.partitions = partitions
        self.answers = answers
        self.stats = stats
        self.held = held
        self.most_bytes = most_bytes
        self.max_frame_bytes = max_frame_bytes
        self.found = []
        self.reads = []

    cdef Py_ssize_t serve(self, uint8_t* data, Py_ssize_t count) except -1:
        """Answer one request, or let it wait; returns its size, 0 if it is left to the handler."""
        cdef Py_ssize_t size = get_int32(data, 0)
        cdef Py_ssize_t answered = self.answers.size
        cdef Outcome outcome
        if size > self.max_frame_bytes or size > count - 4:
            return 0
        began_ns = perf_counter_ns()
        outcome = self.answer(data + 4, size, False)
        if outcome == LEFT:
            return 0
        self.stats.bytes_in += size
        if outcome == WAITS:
            self.waiting = WaitingFetch()
            self.waiting.path = self
            self.waiting.frame = PyBytes_FromStringAndSize(<char*>data + 4, size)
            self.waiting.began_ns = began_ns
            self.waiting.watch()
        else:
            self.count_answer(began_ns, self.answers.size - answered)
        return size + 4

    cdef object answer_again(self, WaitingFetch wait):
        """The response, None if it waits on, or the request if it is for the handler."""
        cdef Outcome outcome
        cdef bytes frame = wait.frame
        self.answers.size = 0
        outcome = self.answer(frame, len(frame), wait.is_last)
        if outcome == LEFT:
            self.stats.bytes_in -= len(frame)
            return memoryview(bytearray(frame))
        if outcome == WAITS:
            wait.watch()
            return None
        self.count_answer(wait.began_ns, self.answers.size)
        return PyBytes_FromStringAndSize(<char*>self.answers.data, self.answers.size)

    cdef int count_answer(self, began_ns, int64_t size) except -1:
        """As `Dispatcher` does."""
        cdef object stats = self.stats
        cdef int64_t elapsed_ns = perf_counter_ns() - began_ns
        stats.bytes_out += size
        stats.by_bits[bit_length(elapsed_ns)] += 1
        stats.total_ns += elapsed_ns
        return 0

    cdef Outcome answer(self, uint8_t* frame, Py_ssize_t size, bint is_last) except *:
        """Write the response, if there is enough to read; `found` has the partitions."""
        cdef Request* request = &self.request
        cdef Topic* topic
        cdef uint8_t* begin
        cdef uint8_t* at
        cdef int64_t most_bytes
        cdef Py_ssize_t room = RESPONSE_BYTES + MOST_BYTES
        cdef bint is_flexible, is_by_id
        cdef int number, part
        if not parse(request, frame, size):
            return LEFT
        is_flexible = request.version >= FLEXIBLE_SINCE
        is_by_id = request.version >= BY_ID_SINCE
        for number in range(request.topic_count):
            topic = &request.topics[number]
            room += TOPIC_BYTES + topic.size + PARTITION_BYTES * (topic.end_part - topic.first_part)
        self.found.clear()
        self.reads.clear()
        self.total = 0
        most_bytes = min(request.max_bytes, self.most_bytes, MOST_BYTES, <int64_t>self.held.room)
        begin = self.answers.end_with_room(room)
        memcpy(begin + 4, request.correlation_id, 4)
        at = begin + 8
        if is_flexible:
            at = put_byte(at, 0)
        at = put_int32(at, 0)  # the throttle time
        if request.version >= SESSION_SINCE:
            at[0] = at[1] = 0  # no error
            at = put_int32(at + 2, 0)  # no session
        at = put_count(at, request.topic_count, is_flexible)
        for number in range(request.topic_count):
            topic = &request.topics[number]
            at = put_topic(at, topic.key, topic.size, is_flexible, is_by_id)
            at = put_count(at, topic.end_part - topic.first_part, is_flexible)
            for part in range(topic.first_part, topic.end_part):
                partition = self.partitions.find(topic.key, topic.size, request.parts[part].index, is_by_id)
                if partition is None:
                    return LEFT
                at = self.put_partition(at, partition, &request.parts[part], most_bytes - self.total)
                if at == NULL:
                    return LEFT
                self.found.append(partition)
            if is_flexible:
                at = put_byte(at, 0)
        if is_flexible:
            at = put_byte(at, 0)
        if self.total < request.min_bytes and request.max_wait_ms > 0 and not is_last:
            return WAITS
        for segment, offset, next_offset, position in self.reads:
            segment._read_ends.pop(offset, None)
            segment._remember_end(next_offset, position)
        put_int32(begin, <int32_t>(at - begin - 4))
        self.answers.size += at - begin
        return ANSWERED

    cdef uint8_t* put_partition(self, uint8_t* at, object partition, Part* part, int64_t room) except? NULL:
        """Write the result for a partition; NULL if it is for the handler."""
        cdef object log, segment
        cdef int64_t next_offset, start_offset, position, size = 0
        cdef ssize_t got
        cdef int fd
        log = usable_log(partition, part)
        if log is None:
            return NULL
        next_offset = log.next_offset
        start_offset = log.start_offset
        if not start_offset <= part.offset <= next_offset:
            return NULL
        segment = log.segments.active
        if self.request.isolation_level == READ_COMMITTED and part.offset < next_offset:
            # Not read yet, or there are aborted transactions.
            if segment.txn_index._entries is None or segment.txn_index._entries:
                return NULL
        at = put_int32(at, part.index)
        at[0] = at[1] = 0  # no error
        at = put_int64(at + 2, next_offset)
        at = put_int64(at, next_offset)
        if self.request.version >= LOG_START_SINCE:
            at = put_int64(at, start_offset)
        at = put_aborted(at, &self.request)
        if self.request.version >= RACK_SINCE:
            at = put_int32(at, -1)  # no other replica to read from
        if part.offset == next_offset:
            at = put_count(at, 0, self.request.version >= FLEXIBLE_SINCE)
            # Where it will continue, once there is more.
            if part.offset not in segment._read_ends:
                segment._remember_end(part.offset, segment.size)
        else:
            known = 0 if part.offset == segment.base_offset else segment._read_ends.get(part.offset)
            if known is None or segment._fd is None:
                return NULL
            position = known
            size = segment.size - position
            if size > room or size > part.most_bytes or position < segment._unverified._until:
                return NULL
            at = put_count(at, <uint32_t>size, self.request.version >= FLEXIBLE_SINCE)
            fd = segment._fd
            with nogil:
                got = pread(fd, at, size, position)
            if got != size or not are_batches(at, size, part.offset, next_offset):
                return NULL
            self.reads.append((segment, part.offset, next_offset, position + size))
            at += size
        self.total += size
        if self.request.version >= FLEXIBLE_SINCE:
            at = put_byte(at, 0)
        return at


cdef class WaitingFetch:
    """A fetch that waits for appends, in the `waits` of its partitions. A connection holds it as its pending request."""

    cdef int watch(self) except -1:
        """Wait for as many bytes as the last attempt to answer lacked."""
        cdef Request* request = &self.path.request
        self.missing = request.min_bytes - self.path.total
        if self.loop is None:
            self.loop = get_running_loop()
            self.until_s = self.loop.time() + min(request.max_wait_ms, MAX_WAIT_MS) / 1000.0
        self.timer = self.loop.call_at(self.until_s, self.give_up)
        self.watched = [partition.waits for partition in self.path.found]
        for waits in self.watched:
            waits.add(self)
        return 0

    def when_done(self, done):
        """Call this with the response, or with the request if the handler must answer it."""
        self.done = done

    def got(self, int64_t size):
        """This many more bytes are readable."""
        self.missing -= size
        if self.missing <= 0:
            self.end()

    def give_up(self):
        """Respond with what there is."""
        self.is_last = True
        self.end()

    def end(self):
        """Look again, in a callback: the append that causes it is not finished yet."""
        if self.watched is not None:
            self.stop()
            self.loop.call_soon(self.finish)

    def cancel(self):
        """The client is gone."""
        self.is_over = True
        self.done = None
        self.stop()

    def stop(self):
        if self.watched is not None:
            self.timer.cancel()
            for waits in self.watched:
                waits.discard(self)
            self.watched = None

    def finish(self):
        if self.is_over:
            return
        answer = self.path.answer_again(self)
        if answer is not None:
            done = self.done
            self.cancel()
            done(answer)


cdef object usable_log(object partition, Part* part):
    """The log of a partition whose records are readable, once appended; otherwise None."""
    cdef object log
    if type(partition.role) is not Standalone or partition.is_synced_first:
        return None
    log = partition._log
    if log is None or log._offline is not None or log.cipher is not None or log.producers._open:
        return None
    if part.leader_epoch != -1 and part.leader_epoch != partition.leader_epoch:
        return None
    if part.last_epoch >= 0:
        # The reader's log cannot diverge if its last record is of the only epoch since.
        entries = log.epochs.entries
        if not entries or entries[-1][0] != part.last_epoch or partition.leader_epoch > part.last_epoch:
            return None
    return log


cdef bint are_batches(uint8_t* data, int64_t size, int64_t from_offset, int64_t next_offset) noexcept:
    """Whether these are whole batches, with the records from one offset to the other."""
    cdef int64_t at = 0
    cdef int64_t length, base_offset
    cdef int32_t delta
    cdef int64_t reached = -1
    while at < size:
        if size - at < BATCH_HEADER_BYTES or data[at + 16] != 2:
            return False
        base_offset = get_int64(data, at)
        length = get_int32(data, at + 8)
        delta = get_int32(data, at + 23)
        if (length < BATCH_HEADER_BYTES - 12 or length > size - at - 12 or delta < 0 or get_int32(data, at + 57) < 0
                or base_offset < 0 or base_offset > HIGHEST_BASE_OFFSET or base_offset < reached):
            return False
        reached = base_offset + delta + 1
        if at == 0 and reached <= from_offset:
            return False
        at += 12 + length
    return reached == next_offset


cdef uint8_t* put_aborted(uint8_t* at, Request* request) noexcept:
    """No aborted transactions: an empty list for a reader that asks for them, otherwise null."""
    if request.isolation_level == READ_COMMITTED:
        return put_count(at, 0, request.version >= FLEXIBLE_SINCE)
    if request.version >= FLEXIBLE_SINCE:
        return put_byte(at, 0)
    return put_int32(at, -1)


cdef bint parse(Request* request, uint8_t* frame, Py_ssize_t size) noexcept:
    """Whether it is a consumer's fetch without a session and without anything unknown; its parts, if so."""
    cdef Cursor cursor
    cdef int64_t count
    cdef int number
    if size < 10 or get_int16(frame, 0) != FETCH:
        return False
    request.version = get_int16(frame, 2)
    if not FIRST_VERSION <= request.version <= LAST_VERSION:
        return False
    request.correlation_id = frame + 4
    cursor.is_flexible = request.version >= FLEXIBLE_SINCE
    if not take_header(&cursor, frame, size) or left(&cursor) < 25:
        return False
    if request.version < REPLICA_STATE_SINCE and take_int32(&cursor) != -1:
        return False
    request.max_wait_ms = take_int32(&cursor)
    request.min_bytes = take_int32(&cursor)
    request.max_bytes = take_int32(&cursor)
    request.isolation_level = <int8_t>cursor.at[0]
    cursor.at += 1
    if not 0 <= request.isolation_level <= READ_COMMITTED:
        return False
    if request.version >= SESSION_SINCE:
        if left(&cursor) < 8 or take_int32(&cursor) != 0 or take_int32(&cursor) != -1:
            return False
    count = take_length(&cursor)
    if count < 1 or count > MOST_PARTS:
        return False
    request.topic_count = <int>count
    request.part_count = 0
    for number in range(request.topic_count):
        if not parse_topic(request, number, &cursor):
            return False
    if request.version >= SESSION_SINCE and take_length(&cursor) != 0:
        return False
    if request.version >= RACK_SINCE and not take_rack(&cursor):
        return False
    return take_no_tags(&cursor) and cursor.at == cursor.end


cdef bint take_rack(Cursor* cursor) noexcept:
    """Without other replicas it does not matter, as long as it is ASCII."""
    cdef int64_t size = take_string_length(cursor)
    if size < 0 or size > left(cursor):
        return False
    while size:
        if cursor.at[0] >= 0x80:
            return False
        cursor.at += 1
        size -= 1
    return True


cdef bint parse_topic(Request* request, int number, Cursor* cursor) noexcept:
    cdef Topic* topic = &request.topics[number]
    cdef int64_t count
    cdef int other
    if not take_topic(cursor, request.version >= BY_ID_SINCE, &topic.key, &topic.size):
        return False
    # A topic that is named twice is once in the response.
    for other in range(number):
        if request.topics[other].size == topic.size and memcmp(request.topics[other].key, topic.key, topic.size) == 0:
            return False
    count = take_length(cursor)
    if count < 1 or count > MOST_PARTS - request.part_count:
        return False
    topic.first_part = request.part_count
    for other in range(<int>count):
        if not parse_part(&request.parts[request.part_count], request.version, cursor):
            return False
        request.part_count += 1
    topic.end_part = request.part_count
    return take_no_tags(cursor)


cdef bint parse_part(Part* part, int16_t version, Cursor* cursor) noexcept:
    cdef int size = 16
    size += 4 * (version >= LEADER_EPOCH_SINCE) + 4 * (version >= FLEXIBLE_SINCE) + 8 * (version >= LOG_START_SINCE)
    if left(cursor) < size:
        return False
    part.index = take_int32(cursor)
    part.leader_epoch = take_int32(cursor) if version >= LEADER_EPOCH_SINCE else -1
    part.offset = get_int64(cursor.at, 0)
    cursor.at += 8
    part.last_epoch = take_int32(cursor) if version >= FLEXIBLE_SINCE else -1
    if version >= LOG_START_SINCE:
        cursor.at += 8
    part.most_bytes = take_int32(cursor)
    return take_no_tags(cursor)
