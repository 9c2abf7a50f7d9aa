"""Appends records to open batches: the part of a send that runs for every record.

Compiled by Cython if a C compiler is available, otherwise run as plain Python. Any thread may append. Open batches
are changed under one lock, which is held for the time of a copy.

An open batch is in its partition's `Filling`. A sealed batch is not changed any more, and belongs to the event loop.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from time import monotonic, time_ns
from typing import TYPE_CHECKING, Any

from ottla.client.errors import ClientError, RecordTooLarge, SerializationFailed, UnknownTopic
from ottla.client.producer.batch import Batch
from ottla.client.producer.delivery import delivered, wait_until_delivered
from ottla.core.errors import ErrorCode

try:
    import cython
except ImportError:
    from ottla.records.uncompiled import cython  # type: ignore[no-redef]

if cython.compiled:
    from cython.cimports.cpython.number import PyNumber_Index as int64
    from cython.cimports.ottla.records.encode import BatchBuilder
    from cython.cimports.ottla.records.murmur2 import partition_of
    from cython.cimports.posix.time import CLOCK_REALTIME, clock_gettime, timespec
else:
    from ottla.records.encode import BatchBuilder
    from ottla.records.murmur2 import partition_of
    from ottla.records.uncompiled import int64

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Generator
    from typing import SupportsIndex

    from ottla.client.producer.delivery import RecordMetadata
    from ottla.client.serializers import Serializer
    from ottla.records.encode import Headers

    AnyBytes = bytes | bytearray | memoryview

IS_COMPILED = cython.compiled
NO_PARTITION = cython.declare(cython.int, -1)


@cython.final
@cython.no_gc
@cython.freelist(256)
@cython.cclass
class Delivery:
    """One record in flight: await it for a RecordMetadata, or its error.

    Awaiting sends its batch at once. Many may be awaited together (asyncio.gather), and one more than once.
    """

    batch = cython.declare(object, visibility="readonly")
    index = cython.declare(cython.int, visibility="readonly")
    timestamp = cython.declare(cython.longlong, visibility="readonly")
    _is_observed = cython.declare(cython.bint)

    @property
    def is_done(self) -> bool:
        is_done: bool = self.batch.is_done
        return is_done

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        self._observe()
        return delivered(self.batch, self.index, self.timestamp).__await__()

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """For a thread without an event loop: block until the outcome is known."""
        self._observe()
        return wait_until_delivered(self.batch, self.index, self.timestamp, timeout_s)

    @cython.cfunc
    def _observe(self) -> object:
        if not self._is_observed:
            self._is_observed = True
            self.batch.observe(self.index)
        return None


@cython.final
@cython.cclass
class Filling:
    """The pending batches of a partition: the open one and sealed ones, and how many more may be started."""

    topic = cython.declare(object, visibility="readonly")
    partition = cython.declare(cython.int, visibility="readonly")
    max_bytes = cython.declare(cython.longlong, visibility="public")
    room = cython.declare(cython.int, visibility="public")
    last_bytes = cython.declare(cython.longlong)  # the size of the last batch, as an estimate for the next
    batch = cython.declare(object, visibility="readonly")
    sealed = cython.declare(object, visibility="readonly")
    queue = cython.declare(object, visibility="public")
    builder = cython.declare(BatchBuilder)

    def __init__(self, topic: TopicBuffers, partition: int, max_bytes: int, buffers: int) -> None:
        self.topic = topic
        self.partition = partition
        self.max_bytes = max_bytes
        self.room = buffers
        self.last_bytes = 0
        self.batch = None
        self.sealed = deque()
        self.queue = None
        self.builder = None

    @property
    def has_room(self) -> bool:
        return self.room > 0 or self.batch is not None


@cython.final
@cython.cclass
class TopicBuffers:
    """A topic's partitions, and the current sticky partition for records without a key."""

    name = cython.declare(str, visibility="readonly")
    fillings = cython.declare(list, visibility="readonly")
    count = cython.declare(cython.int, visibility="public")
    sticky = cython.declare(cython.int, visibility="public")
    _next_sticky = cython.declare(object)
    _partitioner = cython.declare(object)

    def __init__(
        self,
        name: str,
        next_sticky: Callable[[TopicBuffers], int],
        partitioner: Callable[[bytes | None, int], int] | None = None,
    ) -> None:
        self.name = name
        self.fillings = []
        self.count = 0
        self.sticky = NO_PARTITION
        self._next_sticky = next_sticky
        self._partitioner = partitioner

    @cython.cfunc
    @cython.exceptval(-1)
    def choose(self, key: object) -> cython.int:
        chosen: cython.int
        if self._partitioner is not None:
            chosen = self._partitioner(key, self.count)
            if not 0 <= chosen < self.count:
                raise ValueError(f"the partitioner returned {chosen}; {self.name} has {self.count} partitions")
            return chosen
        if key is not None:
            return partition_of(key if type(key) is bytes else bytes(key), self.count)  # type: ignore[call-overload]
        if self.sticky < 0:
            self.sticky = self._next_sticky(self)
        return self.sticky


@cython.final
@cython.cclass
class Accumulator:
    """Appends records to open batches, starts batches and seals them.

    `wake(filling)` is called, in the appending thread and with the lock held, when a batch was started or is full. It
    may only schedule something.
    """

    topics = cython.declare(dict, visibility="readonly")
    is_closed = cython.declare(cython.bint, visibility="public")
    _lock = cython.declare(object)
    _acquire = cython.declare(object)
    _release = cython.declare(object)
    _wake = cython.declare(object)
    _clock = cython.declare(object)
    _compression = cython.declare(cython.int)
    _compression_level = cython.declare(object)
    _key_serializer = cython.declare(object)
    _value_serializer = cython.declare(object)

    def __init__(  # noqa: PLR0913
        self,
        lock: threading.Lock,
        wake: Callable[[Filling], None],
        compression: int = 0,
        compression_level: int | None = None,
        serializers: tuple[Serializer[Any] | None, Serializer[Any] | None] = (None, None),
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.topics = {}
        self.is_closed = False
        self._key_serializer, self._value_serializer = serializers
        self._lock = lock
        self._acquire = lock.acquire
        self._release = lock.release
        self._wake = wake
        self._clock = clock
        self._compression = compression
        self._compression_level = compression_level

    def offer(  # noqa: PLR0913
        self,
        topic: str,
        value: object,
        key: object = None,
        partition: int | None = None,
        timestamp_ms: SupportsIndex | None = None,
        headers: Headers = (),
    ) -> Delivery | None:
        """Send if that needs no waiting; otherwise None, and nothing is sent. Thread-safe."""
        buffers: TopicBuffers | None = self.topics.get(topic)
        if buffers is None or self.is_closed or (partition is not None and not 0 <= partition < buffers.count):
            return None
        if self._key_serializer is not None or self._value_serializer is not None:
            key, value = self.serialized(topic, key, value)
        return self._add(buffers, partition, timestamp_ms, key, value, headers)

    def append(  # noqa: PLR0913
        self,
        topic: TopicBuffers,
        partition: int | None,
        timestamp_ms: SupportsIndex | None,
        key: AnyBytes | None,
        value: AnyBytes | None,
        headers: Headers = (),
    ) -> Delivery | None:
        """Add a record to the partition, or to one chosen by the partitioner; None if all buffers are full."""
        if partition is not None and not 0 <= partition < topic.count:
            what = f"no partition {partition} in topic {topic.name} (it has {topic.count})"
            raise UnknownTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, what)
        return self._add(topic, partition, timestamp_ms, key, value, headers)

    def serialized(self, topic: str, key: object, value: object) -> tuple[object, object]:
        """The key and the value as bytes; null stays null."""
        if self._key_serializer is not None and key is not None:
            key = _serialized(self._key_serializer, key, "key", topic)
        if self._value_serializer is not None and value is not None:
            value = _serialized(self._value_serializer, value, "value", topic)
        return key, value

    @cython.cfunc
    def _add(  # noqa: PLR0913
        self,
        topic: TopicBuffers,
        partition: int | None,
        timestamp: SupportsIndex | None,
        key: object,
        value: object,
        headers: Headers,
    ) -> Delivery | None:
        at: cython.longlong
        chosen: cython.int = NO_PARTITION if partition is None else partition
        if timestamp is None:
            at = _now_ms()
        elif cython.compiled and type(timestamp) is int:
            at = timestamp
        else:
            at = int64(timestamp)  # C would silently truncate a float
        self._acquire()  # half the time of a with statement
        try:
            return self._append(topic, chosen, at, key, value, headers)
        finally:
            self._release()

    @cython.cfunc
    def _append(  # noqa: PLR0913
        self,
        topic: TopicBuffers,
        partition: cython.int,
        timestamp: cython.longlong,
        key: object,
        value: object,
        headers: Headers,
    ) -> Delivery | None:
        chosen: cython.int = topic.choose(key) if partition < 0 else partition
        filling: Filling = topic.fillings[chosen]
        is_sticky: cython.bint = partition < 0 and key is None and topic.sticky == chosen
        if filling.builder is not None:
            if filling.builder.put(timestamp, key, value, headers):
                return _delivery(filling, timestamp)
            self._close(filling)
            self._wake(filling)
            if is_sticky:
                return self._append(topic, partition, timestamp, key, value, headers)
        if filling.room <= 0:
            if is_sticky:
                topic.sticky = NO_PARTITION  # another may have free buffers by the next attempt
            return None
        self._begin(filling, timestamp, key, value, headers)
        return _delivery(filling, timestamp)

    @cython.cfunc
    @cython.exceptval(check=True)
    def _begin(
        self, filling: Filling, timestamp: cython.longlong, key: object, value: object, headers: Headers
    ) -> cython.void:
        builder: BatchBuilder = BatchBuilder(
            self._compression, filling.max_bytes, self._compression_level, filling.last_bytes
        )
        builder.put(timestamp, key, value, headers)
        if builder.size > builder.max_bytes:
            raise RecordTooLarge(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"a record of {builder.size} bytes for {filling.topic.name} exceeds the maximum batch size of "
                f"{filling.max_bytes} (send smaller records, or raise producer_max_bytes)",
            )
        urge = partial(self._wake, filling)
        filling.batch = Batch(filling.topic.name, filling.partition, builder, self._clock(), urge)
        filling.builder = builder
        filling.room -= 1
        self._wake(filling)

    @cython.cfunc
    @cython.exceptval(check=True)
    def _close(self, filling: Filling) -> cython.void:
        topic: TopicBuffers = filling.topic
        filling.sealed.append(filling.batch)
        filling.last_bytes = filling.builder.size
        filling.batch = None
        filling.builder = None
        if topic.sticky == filling.partition:
            topic.sticky = NO_PARTITION

    def seal(self, filling: Filling) -> None:
        """Seal the open batch, if any, although it is not full."""
        with self._lock:
            if filling.batch is not None:
                self._close(filling)

    def waiting(self, filling: Filling) -> list[Batch]:
        """The sealed batches and the open one, oldest first."""
        with self._lock:
            return [*filling.sealed] if filling.batch is None else [*filling.sealed, filling.batch]

    def put(self, filling: Filling, batch: Batch) -> None:
        """Add a batch that was filled elsewhere, after everything appended before."""
        with self._lock:
            if filling.batch is not None:
                self._close(filling)
            filling.sealed.append(batch)
            filling.room -= 1
            self._wake(filling)

    def give_back(self, filling: Filling, buffers: int) -> None:
        """This many batches of the partition are done, and others may be started in their place."""
        with self._lock:
            filling.room += buffers


def _serialized(serializer: Serializer[Any], thing: object, what: str, topic: str) -> bytes:
    try:
        return serializer(thing)
    except ClientError:
        raise
    except Exception as failed:
        raise SerializationFailed(f"could not serialize a {what} for {topic}: {failed}") from failed


@cython.cfunc
@cython.inline
def _delivery(filling: Filling, timestamp: cython.longlong) -> Delivery:
    delivery: Delivery = Delivery.__new__(Delivery)
    delivery.batch = filling.batch
    delivery.index = filling.builder.count - 1
    delivery.timestamp = timestamp
    delivery._is_observed = False  # noqa: SLF001
    return delivery


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _now_ms() -> cython.longlong:
    if cython.compiled:
        now = cython.declare(timespec)
        clock_gettime(CLOCK_REALTIME, cython.address(now))
        return cython.cast(cython.longlong, now.tv_sec) * 1000 + now.tv_nsec // 1000000
    else:
        return time_ns() // 1_000_000
