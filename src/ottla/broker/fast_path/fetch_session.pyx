# cython: language_level=3, boundscheck=False, cdivision=True
"""The partitions of an incremental fetch. Its state stays in `FetchSessions`; nothing changes before `use`."""

from cpython.bytes cimport PyBytes_FromStringAndSize

from ottla.broker.fast_path.fetch_request cimport BY_ID_SINCE
from ottla.broker.fast_path.wire cimport Topic

from ottla.broker.requests.fetch_sessions import next_epoch as _next_epoch
from ottla.wire.declare import NO_UUID as _NO_UUID
from ottla.wire.messages.fetch import FetchPartition as _FetchPartition

cdef object next_epoch = _next_epoch
cdef object NO_UUID = _NO_UUID
cdef object FetchPartition = _FetchPartition


cdef class SessionParts:
    def __init__(self, sessions, topics):
        self.sessions = sessions
        self.topics = topics
        self.keys = []
        self.partitions = []
        self.named = {}

    cdef bint find(self, Request* request, bint is_again) except -1:
        """Whether the session exists, with these partitions and all of them usual; `is_again` after `use`."""
        cdef bint is_by_id = request.version >= BY_ID_SINCE
        cdef Part* part
        cdef dict wanted
        epoch = next_epoch(request.session_epoch) if is_again else request.session_epoch
        self.session = self.sessions.peek(request.session_id, epoch, is_by_id)
        if self.session is None:
            return False
        wanted = self.session.wanted
        if not 0 < len(wanted) <= MOST_PARTS or not self.name_parts(request, is_by_id):
            return False
        self.keys.clear()
        self.partitions.clear()
        self.count = 0
        for key, known in wanted.items():
            partition = self.find_partition(key, is_by_id)
            if partition is None:
                return False
            self.keys.append(key)
            self.partitions.append(partition)
            part = &self.parts[self.count]
            self.count += 1
            number = self.named.get(key)
            if number is not None:
                part[0] = request.parts[<int>number]
                continue
            part.index = known.partition
            part.leader_epoch = known.current_leader_epoch
            part.offset = known.fetch_offset
            part.last_epoch = known.last_fetched_epoch
            part.most_bytes = known.partition_max_bytes
        return True

    cdef bint name_parts(self, Request* request, bint is_by_id) except -1:
        """The partitions in the request by their keys; False if one of them would be added to the session."""
        cdef Topic* topic
        cdef bytes name
        cdef int number, part
        cdef dict wanted = self.session.wanted
        self.named.clear()
        for number in range(request.topic_count):
            topic = &request.topics[number]
            name = PyBytes_FromStringAndSize(<const char*>topic.key, topic.size)
            if not is_by_id and not name.isascii():
                return False
            for part in range(topic.first_part, topic.end_part):
                index = request.parts[part].index
                key = ("", name, index) if is_by_id else (name.decode(), NO_UUID, index)
                if key not in wanted:
                    return False
                self.named[key] = part
        return True

    cdef object find_partition(self, object key, bint is_by_id):
        """The partition, unless its topic is internal or unknown; then None."""
        state = self.topics.by_id.get(key[1]) if is_by_id else self.topics.by_name.get(key[0])
        if state is None or not 0 <= key[2] < len(state.partitions) or state.entry.is_internal:
            return None
        return state.partitions[key[2]]

    cdef bint is_news(self, int number, int64_t high_watermark, int64_t log_start) except -1:
        """Whether a result without records is in the response: see `Session.is_news`."""
        known = self.session.known(self.keys[number])
        return known.high_watermark != high_watermark or known.log_start_offset != log_start

    cdef int use(self, Request* request) except -1:
        """Change the session as this request asks."""
        cdef Part* part
        cdef dict changed = {}
        for key, number in self.named.items():
            part = &request.parts[<int>number]
            changed[key] = FetchPartition(
                partition=part.index,
                current_leader_epoch=part.leader_epoch,
                fetch_offset=part.offset,
                last_fetched_epoch=part.last_epoch,
                log_start_offset=part.log_start,
                partition_max_bytes=part.most_bytes,
            )
        self.sessions.use(self.session, changed)
        return 0

    cdef int rewind(self, Request* request) except -1:
        """Undo `use` of a request that waited and is now for the handler, which uses the session again."""
        session = self.sessions.peek(
            request.session_id, next_epoch(request.session_epoch), request.version >= BY_ID_SINCE
        )
        if session is not None:
            session.epoch = request.session_epoch
        return 0

    cdef int sent(self, int number, int64_t high_watermark, int64_t log_start, bint has_records) except -1:
        self.session.sent(self.keys[number], high_watermark, log_start, has_records)
        return 0
