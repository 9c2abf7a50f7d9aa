# cython: language_level=3, boundscheck=False, cdivision=True
"""Answers the usual produce and fetch requests in C, from the received bytes to the bytes of the responses.

Whatever is unusual is left to `Dispatcher.answer` and its handlers, as if this did not exist: another API, an invalid
request, a request that would be rejected, a transaction, a new fetch session, or a partition that needs more than
appending and reading. Nothing has changed then.

The conditions, from the widest to the narrowest:
- the handler has no wrapper: no ACLs, quotas, auditing, tracing, fault injection (`Dispatcher.reload_handlers`);
- the listener has no authentication (`Listener`), and the connection nothing to do before (`Connection`);
- the partition is the only copy, not internal, and its log is open; appends are acknowledged unsynced, and batches
  are stored as they came (`usable_log`);
- for an append, the log is neither encrypted nor compacted, and has the timestamps of its producers
  (`PendingAppends.begin`); for a read, it is not encrypted and has no open transaction;
- the batch is valid, and follows the last one of its producer in the same segment (`PendingAppends.add`); the reader
  continues where it stopped.
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int16_t, uint8_t

from ottla.broker.fast_path.fetch cimport FastFetch
from ottla.broker.fast_path.produce cimport FastProduce
from ottla.broker.fast_path.wire cimport Answers, Partitions
from ottla.records.big_endian cimport get_int16

cdef enum:
    PRODUCE = 0
    FETCH = 1
    SMALLEST_REQUEST_BYTES = 14
    MOST_ANSWER_BYTES = 65536


cdef class FastPath:
    """Of all listeners. `serve` may be called with any bytes that begin with a frame."""

    cdef Answers answers
    cdef FastProduce produce
    cdef FastFetch fetch

    def __init__(self, broker, produce_stats, fetch_stats):
        """Without the stats of an API its requests are left to the handler."""
        partitions = Partitions(broker.topics)
        most_bytes = broker.settings.net.max_frame_bytes
        self.answers = Answers()
        if produce_stats is not None:
            self.produce = FastProduce(partitions, self.answers, produce_stats, most_bytes)
        if fetch_stats is not None:
            most_bytes = min(most_bytes, broker.settings.net.max_frame_bytes_without_records)
            self.fetch = FastFetch(broker, partitions, self.answers, fetch_stats, most_bytes)

    def serve(self, data, Py_ssize_t count, bint sends_files, /):
        """Answer the first of these requests, as far as they are usual; returns the size of those.

        `take_answers` then has the responses; after them `take_wait` may have a fetch that waits.
        """
        cdef Py_buffer view
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t used
        cdef uint8_t* begin
        cdef int16_t key
        self.answers.size = 0
        PyObject_GetBuffer(data, &view, PyBUF_WRITABLE)
        try:
            count = min(count, view.len)
            while count - at >= SMALLEST_REQUEST_BYTES:
                begin = <uint8_t*>view.buf + at
                key = get_int16(begin, 4)
                used = 0
                if key == PRODUCE and self.produce is not None:
                    used = self.produce.run(begin, count - at)
                elif key == FETCH and self.fetch is not None:
                    used = self.fetch.serve(begin, count - at, sends_files)
                at += used
                if used == 0 or self.answers.size > MOST_ANSWER_BYTES:
                    break
                if key == FETCH and (self.fetch.waiting is not None or self.fetch.ranges):
                    break
            return at
        finally:
            PyBuffer_Release(&view)

    def take_answers(self):
        """The responses: bytes, or a list of bytes and ranges of files."""
        if self.fetch is not None and self.fetch.ranges:
            return self.fetch.take()
        return PyBytes_FromStringAndSize(<char*>self.answers.data, self.answers.size)

    def take_wait(self):
        if self.fetch is None:
            return None
        waiting, self.fetch.waiting = self.fetch.waiting, None
        return waiting
