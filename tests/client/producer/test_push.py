"""Requests of a producer to its brokers, and its reaction to responses."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from tests.client.fake_broker import HangUp, serving, topic
from tests.client.running import LOOPS, run

from ottla.client.client import Client
from ottla.client.errors import (
    AuthorizationFailed,
    BrokerError,
    ClientError,
    DeliveryFailed,
    RecordTooLarge,
)
from ottla.client.router import Purpose
from ottla.core.errors import ErrorCode
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.produce import BatchIndexAndErrorMessage, PartitionProduceResponse, ProduceRequest

from .fakes import QUICK, Leader, producing

NEVER_MS = 600_000


def test_records_sent_together_share_a_batch_and_partitions_share_a_request() -> None:
    async def scenario() -> None:
        leader = Leader()
        async with producing(leader, partitions=3) as producer:
            deliveries = [await producer.send("t", b"%d" % i, partition=i % 3) for i in range(9)]
            await asyncio.gather(*deliveries)

        assert leader.requests == [[("t", 0, 3), ("t", 1, 3), ("t", 2, 3)]]

    run(scenario())


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_a_batch_is_sent_after_its_linger_time(loop: Any) -> None:
    async def scenario() -> None:
        leader = Leader()
        async with producing(leader, producer_batch_timeout_ms=1) as producer:
            delivery = await producer.send("t", b"v")
            await leader.arrivals.get()
            assert delivery.batch.awaited == 0

    run(scenario(), loop)


def test_an_unawaited_batch_waits_for_more_records() -> None:
    async def scenario() -> None:
        leader = Leader()
        async with producing(leader, partitions=2, producer_batch_timeout_ms=NEVER_MS) as producer:
            await producer.send("t", b"held", partition=0)
            await (await producer.send("t", b"awaited", partition=1))
            assert leader.requests == [[("t", 1, 1)]]
            await producer.flush()

        assert leader.logs == {("t", 1): [b"awaited"], ("t", 0): [b"held"]}

    run(scenario())


def test_batches_due_by_time_wait_a_little_for_other_partitions() -> None:
    async def scenario() -> None:
        leader = Leader()
        options = {"pusher_bundle_max_wait_ms": NEVER_MS, "pusher_bundle_min_requests": 2}
        async with producing(leader, partitions=3, client=options, producer_batch_timeout_ms=1) as producer:
            await producer.send("t", b"1", partition=0)
            await producer.send("t", b"2", partition=2)
            await leader.arrivals.get()

        assert [sorted(request) for request in leader.requests] == [[("t", 0, 1), ("t", 2, 1)]]

    run(scenario())


def test_full_batches_are_in_flight_together_and_send_waits_for_room() -> None:
    async def scenario() -> None:
        leader = Leader()
        gate = asyncio.Event()
        options = {"producer_max_bytes": 1024, "producer_queue_buffers": 3}
        async with producing(leader, **options) as producer:
            await (await producer.send("t", b"hello"))
            leader.before_answer = lambda _request: gate.wait()
            for i in range(3):
                await producer.send("t", b"%d" % i * 900)
            blocked = asyncio.ensure_future(producer.send("t", b"3" * 900))
            for _ in range(2):
                await leader.arrivals.get()
            assert not blocked.done()
            gate.set()
            await (await blocked)

        assert leader.logs["t", 0] == [b"hello", *(b"%d" % i * 900 for i in range(4))]

    run(scenario())


def test_a_partition_that_moves_is_followed_and_nothing_is_lost_or_reordered() -> None:
    async def scenario() -> None:
        old, new = Leader(0), Leader(1)
        async with producing(old, new) as producer:
            await (await producer.send("t", b"first"))
            old.refusals = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3
            for broker in (old, new):
                broker.topics["t"] = topic("t", leaders=(1,), epoch=1)
            for i in range(5):
                await producer.send("t", b"%d" % i)
            await producer.flush()

        assert old.logs["t", 0] == [b"first"]
        assert new.logs["t", 0] == [b"%d" % i for i in range(5)]
        assert new.stamps == [(7, 0, 1)]

    run(scenario())


def test_batches_for_a_lost_broker_go_to_the_next_leader() -> None:
    async def scenario() -> None:
        gone, new = Leader(0), Leader(1)
        # A second connection to the lost broker would time out after a minute.
        slow = {"backoff_first_ms": 60_000, "backoff_max_ms": 60_000, "stale_metadata_retry_ms": 1}
        async with producing(gone, new, client=slow) as producer:
            gone.brokers = new.brokers = [gone, new]
            await producer._router.refresh(["t"])
            await gone.stop()
            with suppress(ClientError):
                await producer._router.connection(0, Purpose.GROUP)
            delivery = await producer.send("t", b"v")
            await new.until_asked(MetadataRequest, new.count(MetadataRequest) + 1)
            new.topics["t"] = topic("t", leaders=(1,), epoch=1)
            async with asyncio.timeout(10):
                await delivery

        assert new.logs["t", 0] == [b"v"]

    run(scenario())


def test_a_partition_without_a_leader_is_waited_for() -> None:
    async def scenario() -> None:
        leader = Leader()
        async with producing(leader) as producer:
            await (await producer.send("t", b"first"))
            leader.topics["t"] = topic("t", leaders=(-1,), epoch=1)
            await producer._router.refresh(["t"])
            waiting = asyncio.ensure_future(_outcome(await producer.send("t", b"second")))
            answers = iter([*[leader.topics["t"]] * 3, topic("t", leaders=(0,), epoch=2)])

            def elect(request: MetadataRequest) -> Any:
                leader.topics["t"] = next(answers)
                return leader.metadata(request)

            leader.handlers[MetadataRequest] = elect
            assert (await waiting).offset == 1
            assert next(answers, None) is None

    run(scenario())


def test_after_a_broken_connection_the_same_batch_is_resent() -> None:
    async def scenario() -> None:
        leader = Leader()
        failures = 3

        def hang_up(_request: ProduceRequest) -> None:
            nonlocal failures
            if failures:
                failures -= 1
                leader.logs.clear()
                raise HangUp

        leader.before_answer = hang_up
        async with producing(leader) as producer:
            assert (await (await producer.send("t", b"v"))).offset == 0

        assert leader.stamps == [(7, 0, 0)] * 4

    run(scenario())


def test_a_missing_response_fails_at_the_delivery_timeout() -> None:
    async def scenario() -> None:
        leader = Leader()
        over = asyncio.Event()
        leader.before_answer = lambda _request: over.wait()
        async with producing(leader, delivery_timeout_ms=30) as producer:
            delivery = await producer.send("t", b"v")
            with pytest.raises(DeliveryFailed, match=r"t-0: not acknowledged within 30 ms; last error: .*Produce"):
                await delivery
            over.set()

    run(scenario())


def test_transient_errors_are_retried_in_order() -> None:
    async def scenario() -> None:
        leader = Leader()
        async with producing(leader, producer_max_bytes=1024, producer_queue_buffers=8) as producer:
            await (await producer.send("t", b"first"))
            leader.refusals = [ErrorCode.NOT_ENOUGH_REPLICAS] + [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER] * 4
            for i in range(5):
                await producer.send("t", b"%d" % i * 900)
            await producer.flush()

        assert leader.logs["t", 0] == [b"first", *(b"%d" % i * 900 for i in range(5))]
        assert [epoch for _, epoch, _ in leader.stamps] == [0] * 11

    run(scenario())


def test_an_unknown_producer_id_starts_a_new_epoch() -> None:
    async def scenario() -> None:
        leader = Leader()
        async with producing(leader) as producer:
            await (await producer.send("t", b"1"))
            leader.refusals = [ErrorCode.UNKNOWN_PRODUCER_ID]
            await (await producer.send("t", b"2"))
            await (await producer.send("t", b"3"))

        assert leader.logs["t", 0] == [b"1", b"2", b"3"]
        assert leader.stamps == [(7, 0, 0), (7, 0, 1), (7, 1, 0), (7, 1, 1)]

    run(scenario())


def test_a_batch_too_large_for_the_broker_is_split_until_it_fits() -> None:
    async def scenario() -> None:
        leader = Leader()
        leader.refusals = [ErrorCode.MESSAGE_TOO_LARGE] * 2
        async with producing(leader) as producer:
            deliveries = [await producer.send("t", b"%d" % i) for i in range(8)]
            places = await asyncio.gather(*deliveries)

        assert [place.offset for place in places] == list(range(8))
        assert leader.logs["t", 0] == [b"%d" % i for i in range(8)]
        assert leader.requests == [[("t", 0, count)] for count in (8, 4, 2, 2, 4)]

    run(scenario())


def test_a_single_record_too_large_for_the_topic_fails_when_awaited() -> None:
    async def scenario() -> None:
        leader = Leader()
        async with producing(leader) as producer:
            leader.refusals = [ErrorCode.MESSAGE_TOO_LARGE]
            with pytest.raises(RecordTooLarge, match=r"t-0: MESSAGE_TOO_LARGE .*max\.message\.bytes"):
                await (await producer.send("t", b"large"))
            assert (await (await producer.send("t", b"small"))).offset == 0

        assert [sequence for _, _, sequence in leader.stamps] == [0, 0]

    run(scenario())


def test_each_record_that_is_refused_gets_its_own_error() -> None:
    async def scenario() -> None:
        leader = Leader()
        leader.refusals = [
            PartitionProduceResponse(
                index=0,
                error_code=ErrorCode.INVALID_RECORD,
                base_offset=-1,
                record_errors=(BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="no key"),),
                error_message="a bad batch",
            )
        ]
        async with producing(leader) as producer:
            deliveries = [await producer.send("t", b"%d" % i) for i in range(3)]
            errors = await asyncio.gather(*map(_outcome, deliveries), return_exceptions=True)

        assert [type(error) for error in errors] == [BrokerError] * 3
        assert [str(error) for error in errors] == [
            "t-0: INVALID_RECORD, a bad batch",
            "t-0: INVALID_RECORD, no key",
            "t-0: INVALID_RECORD, a bad batch",
        ]

    run(scenario())


def test_an_error_of_one_partition_does_not_affect_another() -> None:
    async def scenario() -> None:
        leader = Leader()
        leader.refusals = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        async with producing(leader, partitions=2) as producer:
            deliveries = [await producer.send("t", b"v", partition=i) for i in range(2)]
            refused, taken = await asyncio.gather(*map(_outcome, deliveries), return_exceptions=True)

        assert isinstance(refused, AuthorizationFailed)
        assert taken.offset == 0

    run(scenario())


def test_with_acks_0_offsets_are_unknown() -> None:
    async def scenario() -> None:
        leader = Leader()
        async with producing(leader, acks=0, idempotence=False) as producer:
            place = await (await producer.send("t", b"v"))
            await leader.arrivals.get()

        assert place.offset == -1
        assert leader.logs["t", 0] == [b"v"]
        assert leader.stamps == [(-1, -1, -1)]

    run(scenario())


def test_partitions_added_later_are_used() -> None:
    async def scenario() -> None:
        leader = Leader()
        async with producing(leader, partitions=1) as producer:
            await (await producer.send("t", b"1"))
            leader.topics["t"] = topic("t", leaders=(0, 0, 0))

            place = await (await producer.send("t", b"2", partition=2))

        assert (place.partition, place.offset) == (2, 0)

    run(scenario())


def test_a_serializer_makes_bytes_and_null_stays_null() -> None:
    async def scenario() -> None:
        leader = Leader()
        async with serving(leader):
            leader.topics["t"] = topic("t")
            async with (
                Client(leader.address, **QUICK) as client,
                client.producer(key_serializer=str.encode, value_serializer=msgspec.json.encode) as producer,
            ):
                await producer.send("t", {"a": [1]}, key="käy")
                await producer.send("t", None)

        assert leader.logs["t", 0] == [b'{"a":[1]}', None]

    run(scenario())


def test_topics_are_sent_by_name_to_a_broker_that_supports_topic_ids() -> None:
    async def scenario() -> None:
        leader = Leader()
        async with producing(leader) as producer:
            await (await producer.send("t", b"v"))

        assert [version for name, version in leader.asked_versions if name == "Produce"] == [12]

    run(scenario())


async def _outcome(delivery: Any) -> Any:
    return await delivery
