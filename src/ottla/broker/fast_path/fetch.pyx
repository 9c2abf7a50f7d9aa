# cython: language_level=3, boundscheck=False, cdivision=True
"""The usual fetch requests: of consumers at the end of the log, without a fetch session or incremental (KIP-227).

Such a request is answered from the end of the active segment, read into the response; or it waits, without a task,
and is then answered in one callback. To a reader that is far behind, a range of the file is sent.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memcpy
from posix.unistd cimport pread

from ottla.broker.fast_path.fetch_request cimport (
    BY_ID_SINCE,
    FLEXIBLE_SINCE,
    LOG_START_SINCE,
    RACK_SINCE,
    READ_COMMITTED,
    SESSION_SINCE,
    Part,
    Request,
    parse_fetch,
)
from ottla.broker.fast_path.wire cimport Topic, bit_length, put_byte, put_count, put_int32, put_int64, put_topic
from ottla.records.big_endian cimport get_int32, get_int64

from asyncio import get_running_loop as _get_running_loop
from time import perf_counter_ns as _perf_counter_ns

from ottla.broker.roles import Standalone as _Standalone
from ottla.storage.file_ranges import find_range as _find_range

cdef object get_running_loop = _get_running_loop
cdef object perf_counter_ns = _perf_counter_ns
cdef object Standalone = _Standalone
cdef object find_range = _find_range

cdef enum:
    MOST_BYTES = 65536
    MAX_WAIT_MS = 300000
    BATCH_HEADER_BYTES = 61
    # A response without names of topics and records, and what it takes per topic and partition, at most.
    RESPONSE_BYTES = 48
    TOPIC_BYTES = 16
    PARTITION_BYTES = 64
    LONGEST_NAME = 249

cdef int64_t HIGHEST_BASE_OFFSET = 0x7FFFFFFF00000000


cdef class FastFetch:
    def __init__(self, broker, Partitions partitions, Answers answers, stats, max_frame_bytes):
        self.partitions = partitions
        self.session = SessionParts(broker.fetch_sessions, broker.topics)
        self.answers = answers
        self.stats = stats
        self.held = broker.listener.held
        self.most_bytes = broker.config.fetch_max_bytes
        self.max_frame_bytes = max_frame_bytes
        self.found = []
        self.reads = []
        self.ranges = []

    cdef Py_ssize_t serve(self, uint8_t* data, Py_ssize_t count, bint sends_files) except -1:
        """Answer one request, or let it wait; returns its size, 0 if it is left to the handler."""
        cdef Py_ssize_t size = get_int32(data, 0)
        cdef Py_ssize_t answered = self.answers.size
        cdef Outcome outcome
        if size > self.max_frame_bytes or size > count - 4:
            return 0
        began_ns = perf_counter_ns()
        self.sends_files = sends_files
        self.is_again = False
        outcome = self.answer(data + 4, size, False)
        if outcome != ANSWERED:
            self.ranges.clear()
        if outcome == LEFT:
            return 0
        self.stats.bytes_in += size
        if outcome == WAITS:
            self.waiting = WaitingFetch()
            self.waiting.path = self
            self.waiting.frame = PyBytes_FromStringAndSize(<char*>data + 4, size)
            self.waiting.began_ns = began_ns
            self.waiting.sends_files = sends_files
            self.waiting.watch()
        else:
            self.count_answer(began_ns, self.answers.size - answered + self.range_bytes)
        return size + 4

    cdef object answer_again(self, WaitingFetch wait):
        """The response, None if it waits on, or the request if it is for the handler."""
        cdef Outcome outcome
        cdef bytes frame = wait.frame
        self.answers.size = 0
        self.sends_files = wait.sends_files
        self.is_again = True
        outcome = self.answer(frame, len(frame), wait.is_last)
        if outcome != ANSWERED:
            self.ranges.clear()
        if outcome == LEFT:
            if self.request.session_id:
                self.session.rewind(&self.request)
            self.stats.bytes_in -= len(frame)
            return memoryview(bytearray(frame))
        if outcome == WAITS:
            wait.watch()
            return None
        self.count_answer(wait.began_ns, self.answers.size + self.range_bytes)
        return self.take()

    cdef object take(self):
        """The responses: bytes, or a list of bytes and ranges of files."""
        cdef list parts
        cdef Py_ssize_t at, start = 0
        cdef char* data = <char*>self.answers.data
        if not self.ranges:
            return PyBytes_FromStringAndSize(data, self.answers.size)
        parts = []
        for at, found in self.ranges:
            parts.append(PyBytes_FromStringAndSize(data + start, at - start))
            parts.append(found)
            start = at
        parts.append(PyBytes_FromStringAndSize(data + start, self.answers.size - start))
        self.ranges.clear()
        return parts

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
        cdef Py_ssize_t room = RESPONSE_BYTES + MOST_BYTES
        cdef bint is_flexible, is_by_id
        cdef int number, part
        if not parse_fetch(request, frame, size):
            return LEFT
        if request.session_id:
            return self.answer_session(is_last)
        is_flexible = request.version >= FLEXIBLE_SINCE
        is_by_id = request.version >= BY_ID_SINCE
        for number in range(request.topic_count):
            topic = &request.topics[number]
            room += TOPIC_BYTES + topic.size + PARTITION_BYTES * (topic.end_part - topic.first_part)
        begin = self.begin_response(room)
        at = self.put_header(begin)
        at = put_count(at, request.topic_count, is_flexible)
        for number in range(request.topic_count):
            topic = &request.topics[number]
            at = put_topic(at, topic.key, topic.size, is_flexible, is_by_id)
            at = put_count(at, topic.end_part - topic.first_part, is_flexible)
            for part in range(topic.first_part, topic.end_part):
                partition = self.partitions.find(topic.key, topic.size, request.parts[part].index, is_by_id)
                if partition is None:
                    return LEFT
                at = self.put_partition(at, partition, &request.parts[part])
                if at == NULL:
                    return LEFT
                self.found.append(partition)
            if is_flexible:
                at = put_byte(at, 0)
        if is_flexible:
            at = put_byte(at, 0)
        if self.total < request.min_bytes and request.max_wait_ms > 0 and not is_last:
            return WAITS
        self.end_response(begin, at)
        return ANSWERED

    cdef Outcome answer_session(self, bint is_last) except *:
        """The same for an incremental fetch: only partitions with news are in the response."""
        cdef Request* request = &self.request
        cdef SessionParts parts = self.session
        cdef uint8_t* begin
        cdef uint8_t* results
        cdef uint8_t* at
        cdef uint8_t* before
        cdef int number
        cdef int64_t total
        cdef list news = []
        if not parts.find(request, self.is_again):
            return LEFT
        # The results are first written in the order of the session, behind the response that they will be in.
        cdef Py_ssize_t room = RESPONSE_BYTES + MOST_BYTES + parts.count * (PARTITION_BYTES + TOPIC_BYTES + LONGEST_NAME)
        begin = self.begin_response(2 * room)
        results = at = begin + room
        for number in range(parts.count):
            partition = parts.partitions[number]
            before = at
            total = self.total
            at = self.put_partition(before, partition, &parts.parts[number])
            if at == NULL:
                return LEFT
            self.found.append(partition)
            log = partition._log
            if self.total == total and not parts.is_news(number, log.next_offset, log.start_offset):
                at = before
                continue
            sent = self.ranges.pop() if self.ranges else None
            news.append((number, before - results, at - before, sent, log, self.total > total))
        if not self.is_again:
            parts.use(request)
        if self.total < request.min_bytes and request.max_wait_ms > 0 and not is_last:
            return WAITS
        at = self.put_session_topics(self.put_header(begin), results, news)
        self.end_response(begin, at)
        return ANSWERED

    cdef uint8_t* put_session_topics(self, uint8_t* at, uint8_t* results, list news) except NULL:
        """Copy the results to their topics, in the order of each topic's first result."""
        cdef bint is_flexible = self.request.version >= FLEXIBLE_SINCE
        cdef bint is_by_id = self.request.version >= BY_ID_SINCE
        cdef dict topics = {}
        cdef bytes name
        cdef Py_ssize_t start, size, position
        for result in news:
            key = self.session.keys[result[0]]
            topics.setdefault(key[1] if is_by_id else key[0].encode(), []).append(result)
        at = put_count(at, <uint32_t>len(topics), is_flexible)
        for name, of_topic in topics.items():
            at = put_topic(at, name, len(name), is_flexible, is_by_id)
            at = put_count(at, <uint32_t>len(of_topic), is_flexible)
            for number, start, size, sent, log, has_records in of_topic:
                memcpy(at, results + start, size)
                if sent is not None:
                    position, batches = sent
                    position += (at - self.answers.data) - (results + start - self.answers.data)
                    self.ranges.append((position, batches))
                at += size
            if is_flexible:
                at = put_byte(at, 0)
        for number, start, size, sent, log, has_records in news:
            self.session.sent(number, log.next_offset, log.start_offset, has_records)
        return put_byte(at, 0) if is_flexible else at

    cdef uint8_t* begin_response(self, Py_ssize_t room) except NULL:
        self.found.clear()
        self.reads.clear()
        self.ranges.clear()
        self.total = self.range_bytes = 0
        self.left = min(self.request.max_bytes, self.most_bytes, <int64_t>self.held.room)
        self.inline_left = MOST_BYTES
        return self.answers.end_with_room(room)

    cdef uint8_t* put_header(self, uint8_t* begin) noexcept:
        """Everything before the topics, but the size."""
        cdef uint8_t* at = begin + 8
        memcpy(begin + 4, self.request.correlation_id, 4)
        if self.request.version >= FLEXIBLE_SINCE:
            at = put_byte(at, 0)
        at = put_int32(at, 0)  # the throttle time
        if self.request.version >= SESSION_SINCE:
            at[0] = at[1] = 0  # no error
            at = put_int32(at + 2, self.request.session_id)
        return at

    cdef int end_response(self, uint8_t* begin, uint8_t* at) except -1:
        for segment, offset, next_offset, position in self.reads:
            segment.read_ends.pop(offset, None)
            segment.read_ends.remember(next_offset, position)
        put_int32(begin, <int32_t>(at - begin - 4 + self.range_bytes))
        self.answers.size += at - begin
        return 0

    cdef uint8_t* put_partition(self, uint8_t* at, object partition, Part* part) except? NULL:
        """Write the result for a partition; NULL if it is for the handler."""
        cdef object log, active
        cdef int64_t next_offset, start_offset, position
        log = usable_log(partition, part)
        if log is None:
            return NULL
        next_offset = log.next_offset
        start_offset = log.start_offset
        if not start_offset <= part.offset <= next_offset:
            return NULL
        active = log.segments.active
        if self.request.isolation_level == READ_COMMITTED and part.offset < next_offset:
            if may_have_aborted(log, part.offset):
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
            if part.offset not in active.read_ends:
                active.read_ends.remember(part.offset, active.size)
        else:
            position = self.find_known(active, part)
            if position >= 0:
                at = self.put_inline(at, active, position, part, next_offset)
            elif self.sends_files:
                at = self.put_range(at, log, part, next_offset)
            else:
                return NULL
            if at == NULL:
                return NULL
        if self.request.version >= FLEXIBLE_SINCE:
            at = put_byte(at, 0)
        return at

    cdef int64_t find_known(self, object segment, Part* part) except? -2:
        """The position from which everything is read into the response; -1 if it is unknown, or that is too much."""
        cdef int64_t position, size
        known = 0 if part.offset == segment.base_offset else segment.read_ends.get(part.offset)
        if known is None or segment._fd is None:
            return -1
        position = known
        size = segment.size - position
        if size > self.left or size > self.inline_left or size > part.most_bytes or position < segment.unverified._until:
            return -1
        return position

    cdef uint8_t* put_inline(
        self, uint8_t* at, object segment, int64_t position, Part* part, int64_t next_offset
    ) except? NULL:
        """Read the rest of the active segment into the response."""
        cdef int64_t size = segment.size - position
        cdef ssize_t got
        cdef int fd = segment._fd
        at = put_count(at, <uint32_t>size, self.request.version >= FLEXIBLE_SINCE)
        with nogil:
            got = pread(fd, at, size, position)
        if got != size or not are_batches(at, size, part.offset, next_offset):
            return NULL
        self.reads.append((segment, part.offset, next_offset, position + size))
        self.total += size
        self.left -= size
        self.inline_left -= size
        return at + size

    cdef uint8_t* put_range(self, uint8_t* at, object log, Part* part, int64_t next_offset) except? NULL:
        """Send batches from the file behind the response so far."""
        cdef int64_t room = min(part.most_bytes, self.left)
        cdef int64_t size
        if room <= 0:
            return NULL
        found = find_range(log, part.offset, room, next_offset)
        if found is None:
            return NULL
        batches, segment, offset, end_offset, end = found
        size = len(batches)
        # Only the first of a response may be larger than its room.
        if size > room and self.total > 0:
            return NULL
        at = put_count(at, <uint32_t>size, self.request.version >= FLEXIBLE_SINCE)
        self.ranges.append((at - self.answers.data, batches))
        self.reads.append((segment, offset, end_offset, end))
        self.range_bytes += size
        self.total += size
        self.left -= size
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


cdef bint may_have_aborted(object log, int64_t offset) except -1:
    """Whether there are aborted transactions from this offset on, or their indexes were not read yet."""
    cdef list segments = log.segments.all
    cdef Py_ssize_t number = len(segments) - 1
    while True:
        segment = segments[number]
        if segment.txn_index._entries is None or segment.txn_index._entries:
            return True
        if number == 0 or segment.base_offset <= offset:
            return False
        number -= 1


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
