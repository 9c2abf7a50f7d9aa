"""The accumulator: records in open batches, compiled and uncompiled."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.errors import RecordTooLarge, SerializationFailed, UnknownTopic
from ottla.client.producer.batch import Acknowledged, Refused
from ottla.client.producer.delivery import RecordMetadata
from ottla.records.murmur2 import partition_of
from ottla.records.reader import RecordReader

from .forms import FORMS
from .making import LOST, ME, Partition, values

if TYPE_CHECKING:
    from types import ModuleType

pytestmark = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


class Topic:
    """Several partitions; records without a key go to the next one in turn when a batch closes."""

    def __init__(
        self, form: ModuleType, partitions: int, partitioner: Any = None, max_bytes: int = 1 << 20, buffers: int = 2
    ) -> None:
        self.woken: list[int] = []
        self.choices = 0
        self.accumulator = form.Accumulator(threading.Lock(), lambda filling: self.woken.append(filling.partition))
        self.buffers = form.TopicBuffers("t", self._next, partitioner)
        self.buffers.fillings.extend(form.Filling(self.buffers, i, max_bytes, buffers) for i in range(partitions))
        self.buffers.count = partitions

    def _next(self, _topic: object) -> int:
        self.choices += 1
        return (self.choices - 1) % int(self.buffers.count)

    def append(self, key: Any = None, value: Any = b"v", partition: int | None = None, timestamp: Any = 5) -> Any:
        return self.accumulator.append(self.buffers, partition, timestamp, key, value)


def test_records_share_a_batch_and_know_their_index(form: ModuleType) -> None:
    partition = Partition(form)

    first, second = partition.append(b"a"), partition.append(b"b")

    assert first.batch is second.batch is partition.filling.batch
    assert (first.index, second.index) == (0, 1)
    assert (first.timestamp, first.is_done) == (1000, False)
    assert values(partition.queue.filling.batch) == [b"a", b"b"]


def test_the_sender_is_woken_when_a_batch_is_opened_and_when_it_is_full(form: ModuleType) -> None:
    partition = Partition(form, max_bytes=1024)

    partition.append(b"x" * 500)
    assert partition.woken == [partition.filling]
    partition.append(b"x" * 300)
    assert partition.woken == [partition.filling]
    partition.append(b"x" * 500)
    assert partition.woken == [partition.filling] * 3

    assert [batch.count for batch in partition.filling.sealed] == [2]
    assert partition.filling.batch.count == 1


def test_without_room_nothing_is_added_until_a_batch_is_released(form: ModuleType) -> None:
    partition = Partition(form, max_bytes=1024, buffers=2)
    assert all(partition.append(b"x" * 900) for _ in range(2))

    assert partition.append(b"x" * 900) is None
    assert partition.append(b"small") is None
    partition.accumulator.give_back(partition.filling, 1)

    assert partition.append(b"small") is not None


def test_a_record_larger_than_a_batch_is_refused_without_side_effects(form: ModuleType) -> None:
    partition = Partition(form, max_bytes=1024)
    partition.append(b"before")

    with pytest.raises(RecordTooLarge, match=r"a record of 1\d{3} bytes for t.*raise producer_max_bytes"):
        partition.append(b"x" * 1024)
    partition.append(b"after")

    assert values(partition.filling.sealed[0]) == [b"before"]
    assert values(partition.filling.batch) == [b"after"]


@pytest.mark.parametrize("bad", ["text", 7, ["list"]], ids=str)
def test_a_value_that_is_not_bytes_is_refused_without_side_effects(form: ModuleType, bad: Any) -> None:
    partition = Partition(form)

    with pytest.raises(TypeError, match="keys and values must be bytes or None"):
        partition.append(bad)
    partition.append(b"good")

    assert values(partition.filling.batch) == [b"good"]


def test_a_timestamp_must_be_a_whole_number(form: ModuleType) -> None:
    with pytest.raises(TypeError):
        Topic(form, 1).append(timestamp=1.5)
    with pytest.raises(OverflowError):
        Topic(form, 1).append(timestamp=1 << 63)


def test_a_record_without_a_timestamp_gets_the_current_time(form: ModuleType) -> None:
    import time

    before = time.time_ns() // 1_000_000
    at = Topic(form, 1).append(timestamp=None).timestamp
    after = time.time_ns() // 1_000_000

    assert before <= at <= after


@given(key=st.binary(max_size=20), partitions=st.integers(1, 50))
def test_a_key_is_partitioned_as_by_every_client(form: ModuleType, key: bytes, partitions: int) -> None:
    topic = Topic(form, partitions)

    assert topic.append(key).batch.partition == partition_of(key, partitions)
    assert topic.append(bytearray(key)).batch.partition == partition_of(key, partitions)
    assert topic.append(memoryview(key)).batch.partition == partition_of(key, partitions)


def test_records_without_a_key_stick_to_a_partition_until_its_batch_closes(form: ModuleType) -> None:
    topic = Topic(form, 3, max_bytes=1024)

    places = [topic.append(value=b"x" * 400).batch.partition for _ in range(6)]
    topic.accumulator.seal(topic.buffers.fillings[2])

    assert places == [0, 0, 1, 1, 2, 2]
    assert topic.append().batch.partition == 0


def test_records_without_a_key_leave_a_partition_without_room(form: ModuleType) -> None:
    topic = Topic(form, 2, max_bytes=1024, buffers=2)

    places = [topic.append(value=b"x" * 900) for _ in range(4)]

    assert [place.batch.partition for place in places] == [0, 1, 0, 1]
    assert topic.append(value=b"x" * 900) is None
    topic.accumulator.give_back(topic.buffers.fillings[1], 1)
    assert [topic.append(value=b"x" * 900) for _ in range(2)].count(None) == 1


def test_an_explicit_partition_overrides_the_key(form: ModuleType) -> None:
    topic = Topic(form, 9)

    assert [topic.append(b"same key", partition=i).batch.partition for i in range(9)] == list(range(9))


@pytest.mark.parametrize("partition", [3, -1, 1000])
def test_a_partition_that_does_not_exist_is_refused(form: ModuleType, partition: int) -> None:
    with pytest.raises(UnknownTopic, match=rf"no partition {partition} in topic t \(it has 3\)"):
        Topic(form, 3).append(partition=partition)


def test_a_custom_partitioner_is_called_once_for_each_record(form: ModuleType) -> None:
    asked: list[tuple[bytes | None, int]] = []

    def partitioner(key: bytes | None, partitions: int) -> int:
        asked.append((key, partitions))
        return 2

    topic = Topic(form, 3, partitioner, max_bytes=1024)
    deliveries = [topic.append(key, b"x" * 800) for key in (b"k", None)]

    assert [delivery.batch.partition for delivery in deliveries] == [2, 2]
    assert asked == [(b"k", 3), (None, 3)]


@pytest.mark.parametrize("choice", [3, -1])
def test_a_partitioner_that_returns_an_unknown_partition_is_an_error(form: ModuleType, choice: int) -> None:
    with pytest.raises(ValueError, match=f"the partitioner returned {choice}; t has 3 partitions"):
        Topic(form, 3, lambda _key, _partitions: choice).append()


def test_an_added_batch_comes_after_earlier_records(form: ModuleType) -> None:
    partition, other = Partition(form), Partition(form)
    partition.append(b"before")

    partition.accumulator.put(partition.filling, other.seal(b"elsewhere"))
    partition.append(b"after")

    waiting = [*partition.filling.sealed, partition.filling.batch]
    assert [values(batch) for batch in waiting] == [[b"before"], [b"elsewhere"], [b"after"]]
    assert partition.filling.room == 7


def test_many_threads_may_append_at_once(form: ModuleType) -> None:
    partition = Partition(form, max_bytes=4096, buffers=10_000)

    def append(name: bytes) -> None:
        for i in range(500):
            partition.append(b"%s %d" % (name, i))

    threads = [threading.Thread(target=append, args=(b"%d" % i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    partition.accumulator.seal(partition.filling)
    found = [record.value for batch in partition.filling.sealed for record in RecordReader(batch.encode(ME))]
    assert len(found) == 2000
    for i in range(4):
        mine = [value for value in found if value is not None and value.startswith(b"%d " % i)]
        assert mine == [b"%d %d" % (i, j) for j in range(500)]


def test_a_delivery_has_partition_and_offset(form: ModuleType) -> None:
    partition = Partition(form)
    _, second = partition.append(), partition.append()
    batch = second.batch

    async def wait() -> Any:
        waiting = asyncio.gather(second, second)
        await asyncio.sleep(0)
        assert batch.is_urgent
        batch.finish(Acknowledged(base_offset=40))
        return await waiting

    place = RecordMetadata("t", 0, 41, 1000)
    assert asyncio.run(wait()) == [place, place]
    assert batch.awaited == 1
    assert second.is_done


def test_log_append_time_replaces_the_timestamp(form: ModuleType) -> None:
    delivery = Partition(form).append()
    delivery.batch.finish(Acknowledged(base_offset=3, log_append_time_ms=99))

    async def wait() -> Any:
        return await delivery

    assert asyncio.run(wait()) == RecordMetadata("t", 0, 3, 99)


def test_cancelling_one_wait_does_not_affect_the_others(form: ModuleType) -> None:
    partition = Partition(form)
    delivery = partition.append()

    async def wait() -> Any:
        impatient, patient = (asyncio.ensure_future(_outcome(delivery)) for _ in range(2))
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.gather(impatient, return_exceptions=True)
        delivery.batch.finish(Acknowledged(base_offset=1))
        return await patient

    assert asyncio.run(wait()).offset == 1


def test_a_failure_is_raised_to_the_awaiting_caller(form: ModuleType) -> None:
    partition = Partition(form)
    good, bad = partition.append(), partition.append()
    special = UnknownTopic(3, "this one")  # type: ignore[arg-type]
    good.batch.finish(Refused(LOST, {1: special}))

    async def errors() -> list[Any]:
        return await asyncio.gather(_outcome(good), _outcome(bad), return_exceptions=True)  # type: ignore[return-value]

    assert asyncio.run(errors()) == [LOST, special]


async def _outcome(delivery: Any) -> Any:
    return await delivery


class Offers(Topic):
    """A topic known to the accumulator."""

    def __init__(self, form: ModuleType, *serializers: Any) -> None:
        super().__init__(form, 2)
        self.accumulator = form.Accumulator(
            threading.Lock(), lambda _filling: None, serializers=serializers or (None, None)
        )
        self.accumulator.topics["t"] = self.buffers


def test_an_offer_is_accepted_if_it_need_not_wait(form: ModuleType) -> None:
    accumulator = Offers(form).accumulator

    taken = accumulator.offer("t", b"v", b"k", 1, 77, [("a", b"1")])

    assert (taken.batch.partition, taken.index, taken.timestamp) == (1, 0, 77)
    [record] = RecordReader(taken.batch.encode(ME))
    assert (record.key, record.value, record.headers) == (b"k", b"v", (("a", b"1"),))


@pytest.mark.parametrize(("topic", "partition"), [("unknown", None), ("t", 2), ("t", -1)])
def test_an_offer_that_must_wait_for_metadata_is_declined(form: ModuleType, topic: str, partition: int | None) -> None:
    assert Offers(form).accumulator.offer(topic, b"v", None, partition) is None


def test_an_offer_to_a_closed_producer_is_declined(form: ModuleType) -> None:
    accumulator = Offers(form).accumulator
    accumulator.is_closed = True

    assert accumulator.offer("t", b"v") is None


def test_offers_are_serialized_and_null_stays_null(form: ModuleType) -> None:
    accumulator = Offers(form, str.encode, lambda value: b"<%d>" % value).accumulator

    batch = accumulator.offer("t", 7, "kéy", 0).batch
    accumulator.offer("t", None, None, 0)

    records = [(record.key, record.value) for record in RecordReader(batch.encode(ME))]
    assert records == [("kéy".encode(), b"<7>"), (None, None)]


@pytest.mark.parametrize(("key", "value", "what"), [(1, "v", "key"), ("k", 2, "value")])
def test_a_serializer_error_is_raised_with_the_reason(form: ModuleType, key: Any, value: Any, what: str) -> None:
    accumulator = Offers(form, str.encode, str.encode).accumulator

    with pytest.raises(SerializationFailed, match=f"could not serialize a {what} for t") as refused:
        accumulator.offer("t", value, key)

    assert isinstance(refused.value.__cause__, TypeError)
