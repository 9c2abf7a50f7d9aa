"""Start and close of a producer, and its reports of failures."""

from __future__ import annotations

import asyncio

import pytest
from tests.client.fake_broker import ALL_VERSIONS
from tests.client.running import run

from ottla.client.errors import AuthorizationFailed, BrokerError, ClientClosed, DeliveryFailed, UnsupportedByBroker
from ottla.core.errors import ConfigError, ErrorCode
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

from .fakes import Leader, producing


def test_unawaited_failures_are_raised_once_by_flush_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        leader = Leader()
        leader.refusals = [ErrorCode.INVALID_RECORD]
        async with producing(leader) as producer:
            await producer.send("t", b"1")
            await producer.send("t", b"2")
            with pytest.raises(DeliveryFailed, match="could not deliver 2 records to t-0: t-0: INVALID_RECORD"):
                await producer.flush()
            await producer.flush()

    run(scenario())
    assert "could not deliver 2 records to t-0" in caplog.text


def test_unawaited_failures_are_raised_by_close() -> None:
    async def scenario() -> None:
        leader = Leader()
        leader.refusals = [ErrorCode.INVALID_RECORD]
        with pytest.raises(DeliveryFailed, match="could not deliver 1 records"):
            async with producing(leader) as producer:
                await producer.send("t", b"1")

    run(scenario())


def test_an_awaited_failure_is_not_reported_again(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        leader = Leader()
        leader.refusals = [ErrorCode.INVALID_RECORD]
        async with producing(leader) as producer:
            with pytest.raises(BrokerError):
                await (await producer.send("t", b"1"))

    run(scenario())
    assert caplog.text == ""


def test_a_closed_producer_refuses_records_and_may_be_closed_again() -> None:
    async def scenario() -> None:
        leader = Leader()
        async with producing(leader) as producer:
            await producer.send("t", b"kept")
            await producer.close()
            with pytest.raises(ClientClosed, match="the producer is closed"):
                await producer.send("t", b"late")
            with pytest.raises(ClientClosed, match="the producer is closed"):
                await producer.send("another", b"late")
            await producer.close()

        assert leader.logs["t", 0] == [b"kept"]

    run(scenario())


def test_closing_wakes_a_send_that_waits_for_room() -> None:
    async def scenario() -> None:
        leader = Leader()
        gate = asyncio.Event()
        leader.before_answer = lambda _request: gate.wait()
        async with producing(leader, producer_max_bytes=1024) as producer:
            for _ in range(2):
                await producer.send("t", b"x" * 900)
            blocked = asyncio.ensure_future(producer.send("t", b"x" * 900))
            await asyncio.sleep(0)
            closing = asyncio.ensure_future(producer.close())
            await asyncio.sleep(0)
            gate.set()
            with pytest.raises(ClientClosed):
                await blocked
            await closing

        assert leader.logs["t", 0] == [b"x" * 900] * 2

    run(scenario())


def test_a_refused_producer_id_is_an_error_at_start() -> None:
    async def scenario() -> None:
        leader = Leader()
        leader.handlers[InitProducerIdRequest] = lambda _request: InitProducerIdResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, producer_id=-1, producer_epoch=-1
        )
        with pytest.raises(AuthorizationFailed, match=r"a producer id, which idempotence needs.*may write to no topic"):
            async with producing(leader):
                raise AssertionError("not reached")

    run(scenario())


def test_a_broker_too_old_for_idempotence_is_an_error_at_start() -> None:
    async def scenario() -> None:
        leader = Leader()
        leader.versions = {key: span for key, span in ALL_VERSIONS.items() if key != 22}
        with pytest.raises(UnsupportedByBroker):
            async with producing(leader):
                raise AssertionError("not reached")

    run(scenario())


def test_idempotence_needs_all_acks() -> None:
    async def scenario() -> None:
        leader = Leader()
        with pytest.raises(ConfigError, match="idempotence=False"):
            async with producing(leader, acks=1):
                raise AssertionError("not reached")

    run(scenario())
