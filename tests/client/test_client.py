"""The client from the user's view: start, close, errors."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.client import Client
from ottla.client.errors import (
    BrokerError,
    ClientClosed,
    ClientError,
    CommitFailed,
    ConnectFailed,
    RecordTooLarge,
    UnknownTopic,
    broker_error,
)
from ottla.client.serializers import decode_json, decode_text, encode_json, encode_text
from ottla.core.errors import ConfigError, ErrorCode, OttlaError
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

from .fake_broker import FakeBroker, serving
from .running import LOOPS, run

if TYPE_CHECKING:
    from collections.abc import Callable


class Made:
    """An object created by a client, which must close it."""

    def __init__(self, closed: list[str], name: str, error: Exception | None = None) -> None:
        self._closed = closed
        self._name = name
        self._error = error
        self.is_closed = False

    async def close(self) -> None:
        self.is_closed = True
        self._closed.append(self._name)
        if self._error is not None:
            raise self._error


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_it_connects_lists_topics_and_closes(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def scenario() -> None:
        async with ottla.Broker() as broker, Client(broker.bootstrap_servers, leader_election_retry_ms=10) as client:
            await client.admin.create_topic("orders", partitions=2)
            assert await client.topics() == ["orders"]
            assert await client.partitions("orders") == [0, 1]
            with pytest.raises(UnknownTopic):
                await client.partitions("other")

    run(scenario(), loop)


def test_one_client_serves_concurrent_calls() -> None:
    async def scenario() -> None:
        async with ottla.Broker() as broker, Client(broker.bootstrap_servers) as client:
            await client.admin.create_topic("orders")
            found = await asyncio.gather(*(client.partitions("orders") for _ in range(100)))
            assert found == [[0]] * 100

    run(scenario())


def test_use_before_start_is_an_error_that_says_how_to_start() -> None:
    client = Client("localhost:9092")
    with pytest.raises(ClientError, match="use it in an `async with` block, or call start"):
        client.producer()


def test_use_after_close_is_an_error() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with serving(broker):
            async with Client(broker.address) as client:
                pass
            await client.close()
            for use in (client.producer, client.consumer, lambda: client.admin):
                with pytest.raises(ClientClosed, match="create a new one"):
                    use()
            for wait in (client.topics(), client.partitions("a"), client.start()):
                with pytest.raises(ClientClosed):
                    await wait

    run(scenario())


def test_a_failed_start_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        with pytest.raises(ConnectFailed, match=r"127\.0\.0\.1:1"):
            async with Client("127.0.0.1:1", metadata_refresh_retry_count=1):
                pass

    run(scenario())


def test_a_cancelled_start_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        client = Client("127.0.0.1:1", metadata_refresh_retry_count=0)
        starting = asyncio.create_task(client.start())
        await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting

    run(scenario())


def test_an_invalid_address_or_option_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="is a URL"):
        Client("http://localhost")
    with pytest.raises(ConfigError, match="request_timeout_ms"):
        Client("localhost", request_timeout_ms=-1)


def test_all_objects_it_created_are_closed_newest_first_despite_errors() -> None:
    async def scenario() -> list[str]:
        closed: list[str] = []
        broker = FakeBroker()
        async with serving(broker):
            client = Client(broker.address)
            await client.start()
            for name, error in (("first", None), ("second", KeyError("mine")), ("third", None)):
                client._keep(Made(closed, name, error))
            with pytest.raises(KeyError, match="mine"):
                await client.close()
            with pytest.raises(ClientClosed):
                await client.topics()
        return closed

    assert run(scenario()) == ["third", "second", "first"]


def test_closed_objects_are_not_kept() -> None:
    async def scenario() -> None:
        async with ottla.Broker() as broker, Client(broker.bootstrap_servers) as client:
            for _ in range(3):
                async with client.producer():
                    pass
                async with client.consumer():
                    pass
            assert len(client._made) == 1

    run(scenario())


def test_a_producer_waits_until_the_broker_can_assign_producer_ids() -> None:
    async def scenario() -> int:
        codes = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NONE]
        broker = FakeBroker(
            {
                InitProducerIdRequest: lambda _: InitProducerIdResponse(
                    error_code=codes.pop(0), producer_id=7, producer_epoch=0
                )
            }
        )
        async with serving(broker), Client(broker.address, backoff_first_ms=1) as client, client.producer():
            return broker.count(InitProducerIdRequest)

    assert run(scenario()) == 3


# Errors


def test_a_broker_error_names_the_subject_the_code_and_the_remedy() -> None:
    error = broker_error(10, "a batch for orders-0", "1048576 bytes is too much")
    assert isinstance(error, RecordTooLarge)
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert str(error) == (
        "a batch for orders-0: MESSAGE_TOO_LARGE, 1048576 bytes is too much "
        "(send smaller batches, or raise the topic's max.message.bytes)"
    )
    assert isinstance(error, OttlaError)


def test_common_errors_have_a_class_and_the_others_a_code() -> None:
    assert isinstance(broker_error(25, "x"), CommitFailed)
    assert type(broker_error(37, "x")) is BrokerError
    assert broker_error(6, "x").is_retriable
    assert not broker_error(37, "x").is_retriable


def test_a_code_newer_than_this_client_is_shown_as_its_number() -> None:
    error = broker_error(9999, "x")
    assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert str(error) == "x: error 9999"


# Serializers


def test_text_and_json_round_trip() -> None:
    assert decode_text(encode_text("grün")) == "grün"
    assert decode_json(encode_json({"a": [1, None, "ü"]})) == {"a": [1, None, "ü"]}
