"""Records as light objects.

Compiled by Cython if a C compiler is available, otherwise run as plain Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.records.batch import check_batch, whole_batch
from ottla.records.compression import MAX_DECOMPRESSED_BYTES
from ottla.records.payload import open_batch

try:
    import cython
except ImportError:
    from ottla.records.uncompiled import cython  # type: ignore[no-redef]

if cython.compiled:
    from cython.cimports.ottla.records.payload import Payload
else:
    from ottla.records.payload import Payload
    from ottla.records.uncompiled import int32, int64

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


@cython.no_gc
@cython.freelist(512)
@cython.final
@cython.cclass
class Record:
    """One record. `timestamp` is in milliseconds; `headers` is a tuple of (key, value) pairs.

    It refers to bytes, text, tuples of them and deserialized values, so it is not tracked by the garbage collector:
    only a deliberate cycle could leak.
    """

    topic = cython.declare(str, visibility="readonly")
    partition = cython.declare(cython.int, visibility="readonly")
    offset = cython.declare(cython.longlong, visibility="readonly")
    timestamp = cython.declare(cython.longlong, visibility="readonly")
    is_log_append_time = cython.declare(cython.bint, visibility="readonly")
    key = cython.declare(object, visibility="readonly")
    value = cython.declare(object, visibility="readonly")
    headers = cython.declare(tuple, visibility="readonly")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return _fields(self) == _fields(other)

    def __hash__(self) -> int:
        return hash(_fields(self))

    def __repr__(self) -> str:
        place = f"topic={self.topic!r}, partition={self.partition}, " if self.topic else ""
        return f"Record({place}offset={self.offset}, key={self.key!r}, value={self.value!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, _fields(self)


@cython.cfunc
def _fields(record: Record) -> tuple[object, ...]:
    return (
        record.topic,
        record.partition,
        record.offset,
        record.timestamp,
        record.is_log_append_time,
        record.key,
        record.value,
        record.headers,
    )


def _restore(  # noqa: PLR0913
    topic: str,
    partition: int,
    offset: int,
    timestamp: int,
    is_log_append_time: bool,  # noqa: FBT001
    key: object,
    value: object,
    headers: tuple[tuple[str, bytes | None], ...],
) -> Record:
    """Unpickle a record."""
    record: Record = Record.__new__(Record)
    record.topic = topic
    record.partition = partition
    record.offset = offset
    record.timestamp = timestamp
    record.is_log_append_time = is_log_append_time
    record.key = key
    record.value = value
    record.headers = headers
    return record


@cython.final
@cython.cclass
class RecordReader:
    """Iterates over the records of consecutive batches, from one offset on, without those of control batches.

    One decompressed batch is held at a time, limited to `max_decompressed_bytes`. A corrupt batch raises an error
    each time
    it is reached, and so does a record that a deserializer rejects; `offset` identifies it. A null key or value stays
    None.
    """

    offset = cython.declare(cython.longlong, visibility="readonly")
    _source = cython.declare(object)
    _at = cython.declare(cython.Py_ssize_t)
    _from_offset = cython.declare(cython.longlong)
    _max_bytes = cython.declare(object)
    _with_control = cython.declare(cython.bint)
    _check = cython.declare(object)
    _topic = cython.declare(str)
    _partition = cython.declare(cython.int)
    _read_key = cython.declare(object)
    _read_value = cython.declare(object)
    _key_needs_headers = cython.declare(cython.bint)
    _value_needs_headers = cython.declare(cython.bint)
    _payload = cython.declare(Payload)

    def __init__(  # noqa: PLR0913
        self,
        source: bytes | bytearray | memoryview,
        from_offset: int = 0,
        max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
        with_control: bool = False,  # noqa: FBT001, FBT002
        *,
        topic: str = "",
        partition: int = -1,
        key_deserializer: Callable[[bytes], Any] | None = None,
        value_deserializer: Callable[[bytes], Any] | None = None,
        check_crcs: bool = True,
    ) -> None:
        if not cython.compiled:
            from_offset = int64(from_offset)
            partition = int32(partition)
        self._source = memoryview(source).cast("B")
        self._at = 0
        self._from_offset = self.offset = from_offset
        self._max_bytes = max_decompressed_bytes
        self._with_control = with_control
        self._check = check_batch if check_crcs else whole_batch
        self._topic = topic
        self._partition = partition
        # `deserialize` also gets the headers; see RecordDeserializer of the client.
        self._read_key = getattr(key_deserializer, "deserialize", key_deserializer)
        self._read_value = getattr(value_deserializer, "deserialize", value_deserializer)
        self._key_needs_headers = self._read_key is not key_deserializer
        self._value_needs_headers = self._read_value is not value_deserializer
        self._payload = None

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        record: Record | None = self._next_record()
        if record is None:
            raise StopIteration
        return record

    def take(self, count: int) -> list[Record]:
        """The next `count` records; fewer only at the end, or before a record that raises an error on the next call."""
        records: list[Record] = []
        record: Record | None
        left: cython.Py_ssize_t = count
        try:
            while left > 0:
                record = self._next_record()
                if record is None:
                    break
                records.append(record)
                left -= 1
        except Exception:
            if not records:
                raise
        return records

    @property
    def is_done(self) -> bool:
        """Whether everything has been read. May be false while only batches without deliverable records remain."""
        payload: Payload | None = self._payload
        if payload is not None and (payload.records_left or payload.next_at != payload.end):
            return False
        return self._at >= len(self._source)

    @cython.cfunc
    @cython.exceptval(-1)
    def _next_batch(self) -> cython.int:
        """Open the next batch with records to deliver; 0 if there is none."""
        while self._at < len(self._source):
            header = self._check(self._source, self._at)
            if header.last_offset < self._from_offset or (header.is_control and not self._with_control):
                self._at += header.size
                continue
            self._payload = open_batch(self._source, header, self._at, self._max_bytes)
            self._at += header.size
            return 1
        return 0

    @cython.cfunc
    def _next_record(self) -> Record | None:
        payload: Payload | None = self._payload
        record: Record
        while True:
            while payload is None or payload.records_left == 0:
                if payload is not None:
                    payload.finish()
                    self._payload = None
                if not self._next_batch():
                    return None
                payload = self._payload
            began_at: cython.Py_ssize_t = payload.next_at
            payload.next_record()
            record = Record.__new__(Record)
            record.topic = self._topic
            record.partition = self._partition
            record.offset = payload.offset
            record.timestamp = payload.timestamp
            record.is_log_append_time = payload.is_log_append_time
            record.key = payload.cut(payload.key_at, payload.key_length)
            record.value = payload.cut(payload.value_at, payload.value_length)
            if payload.header_count:
                record.headers = tuple([payload.header() for _ in range(payload.header_count)])
                payload.finish_record()
            else:
                record.headers = ()
            if payload.offset < self._from_offset:
                continue
            self.offset = record.offset
            if self._read_key is not None or self._read_value is not None:
                self._deserialize(record, payload, began_at)
            return record

    @cython.cfunc
    @cython.exceptval(-1)
    def _deserialize(self, record: Record, payload: Payload, began_at: cython.Py_ssize_t) -> cython.int:
        try:
            if self._read_key is not None and record.key is not None:
                if self._key_needs_headers:
                    record.key = self._read_key(record.key, "key", record.headers)
                else:
                    record.key = self._read_key(record.key)
            if self._read_value is not None and record.value is not None:
                if self._value_needs_headers:
                    record.value = self._read_value(record.value, "value", record.headers)
                else:
                    record.value = self._read_value(record.value)
        except BaseException:
            # Reset to unread, so that it is raised again.
            payload.next_at = began_at
            payload.records_left += 1
            raise
        return 0
