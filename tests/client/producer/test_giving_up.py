"""A producer without a broker: it waits for the delivery timeout, and then fails."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest
from tests.client.fake_broker import topic
from tests.client.running import run

from ottla.client.errors import AuthorizationFailed, ConnectFailed, DeliveryFailed, RequestTimedOut
from ottla.client.producer.batch import Identity
from ottla.core.errors import ErrorCode
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

from .fakes import Leader, producing

GIVE_UP_MS = 60


def test_a_partition_without_a_leader_fails_at_the_delivery_timeout() -> None:
    async def scenario() -> None:
        leader = Leader()
        async with producing(leader, delivery_timeout_ms=GIVE_UP_MS) as producer:
            await (await producer.send("t", b"first"))
            leader.topics["t"] = topic("t", leaders=(-1,), epoch=1)
            await producer._router.refresh(["t"])
            delivery = await producer.send("t", b"second")
            with pytest.raises(DeliveryFailed, match="t-0: not acknowledged within 60 ms"):
                await delivery

    run(scenario())


def test_a_lost_broker_fails_at_the_delivery_timeout_with_the_reason() -> None:
    async def scenario() -> None:
        leader, other = Leader(0), Leader(1)
        async with producing(leader, other, delivery_timeout_ms=GIVE_UP_MS) as producer:
            await (await producer.send("t", b"first"))
            await leader.stop()
            delivery = await producer.send("t", b"second")
            with pytest.raises(DeliveryFailed, match="last error") as failed:
                await delivery
            assert isinstance(failed.value.__cause__, ConnectFailed | RequestTimedOut)

    run(scenario())


def test_a_send_that_waits_for_room_proceeds_when_old_batches_expire() -> None:
    async def scenario() -> None:
        leader = Leader()
        gate = asyncio.Event()
        leader.before_answer = lambda _request: gate.wait()
        async with producing(leader, delivery_timeout_ms=GIVE_UP_MS, producer_max_bytes=1024) as producer:
            old = [await producer.send("t", b"x" * 900) for _ in range(2)]
            new = await producer.send("t", b"y" * 900)
            assert any(delivery.is_done for delivery in old)
            gate.set()
            for delivery in (*old, new):
                await asyncio.gather(_outcome(delivery), return_exceptions=True)

    run(scenario())


def test_after_the_last_epoch_a_new_producer_id_is_requested() -> None:
    async def scenario() -> None:
        leader = Leader()
        ids = count(7)
        leader.handlers[InitProducerIdRequest] = lambda _request: InitProducerIdResponse(
            error_code=0, producer_id=next(ids), producer_epoch=0
        )
        async with producing(leader) as producer:
            await (await producer.send("t", b"1"))
            [queue] = producer._sender.queues()
            queue.identify(Identity(7, 0x7FFF))
            leader.refusals = [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
            await (await producer.send("t", b"2"))

        assert leader.stamps == [(7, 0, 0), (7, 0x7FFF, 0), (8, 0, 0)]
        assert leader.logs["t", 0] == [b"1", b"2"]

    run(scenario())


def test_a_refused_producer_id_fails_the_waiting_batches() -> None:
    async def scenario() -> None:
        leader = Leader()
        async with producing(leader) as producer:
            await (await producer.send("t", b"1"))
            [queue] = producer._sender.queues()
            queue.identify(Identity(7, 0x7FFF))
            leader.refusals = [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
            leader.handlers[InitProducerIdRequest] = lambda _request: InitProducerIdResponse(
                error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, producer_id=-1, producer_epoch=-1
            )
            with pytest.raises(AuthorizationFailed):
                await (await producer.send("t", b"2"))

    run(scenario())


async def _outcome(delivery: object) -> object:
    return await delivery  # type: ignore[misc]
