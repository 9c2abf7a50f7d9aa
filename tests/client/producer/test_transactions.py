"""Transactions of Ottla's client and a real broker, verified by librdkafka with read_committed."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING

import pytest
from tests.broker import making
from tests.broker.raw_client import RawClient
from tests.client.running import run
from tests.clients.processes import Server

import ottla
from ottla.broker.handlers import api_versions
from ottla.client.admin.offsets import CommittedOffset
from ottla.client.client import Client
from ottla.client.config import ProducerConfig
from ottla.client.errors import ClientError, ProducerFenced, RecordTooLarge, TransactionFailed
from ottla.client.group.interface import Committed, GroupProgress
from ottla.core.errors import ConfigError
from ottla.core.ids import TopicPartition
from ottla.wire.messages.api_versions import FinalizedFeatureKey

from .reading import values

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_numbers = count(1)


class Mistake(Exception):  # noqa: N818
    """An error of the application."""


@pytest.fixture(scope="module", params=[2, 1], ids="transaction.version={}".format)
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker that announces this transaction.version."""
    announced = FinalizedFeatureKey(
        name="transaction.version", max_version_level=request.param, min_version_level=request.param
    )
    with (
        pytest.MonkeyPatch.context() as patch,
        ottla.Broker(tmp_path_factory.mktemp("broker")) as broker,
    ):
        patch.setattr(api_versions, "_FINALIZED", (announced,))
        yield broker.bootstrap_servers


@pytest.fixture
def topic(servers: str) -> str:
    name = f"topic-{next(_numbers)}"
    with RawClient(servers) as client:
        making.create_topic(client, name, 1, {"max.message.bytes": "2000"})
    return name


def test_records_of_a_transaction_are_visible_after_commit(servers: str, topic: str) -> None:
    async def scenario() -> None:
        async with Client(servers) as client, client.producer(transactional_id=topic) as producer:
            for number in range(3):
                async with producer.transaction():
                    delivery = await producer.send(topic, b"%d" % number)
                    assert (await delivery).topic == topic
                    assert len(values(servers, topic)) == number

    run(scenario())
    assert values(servers, topic) == [b"0", b"1", b"2"]


def test_an_error_in_the_block_aborts_and_the_next_transaction_works(servers: str, topic: str) -> None:
    async def scenario() -> None:
        async with Client(servers) as client, client.producer(transactional_id=topic) as producer:
            with pytest.raises(Mistake):  # noqa: PT012
                async with producer.transaction():
                    await (await producer.send(topic, b"arrived"))
                    await producer.send(topic, b"not even sent")
                    raise Mistake
            async with producer.transaction():
                await producer.send(topic, b"good")

    run(scenario())
    assert values(servers, topic) == [b"good"]


def test_a_record_that_fails_fails_the_transaction(servers: str, topic: str) -> None:
    async def scenario() -> None:
        async with Client(servers) as client, client.producer(transactional_id=topic) as producer:
            with pytest.raises(TransactionFailed) as failed:  # noqa: PT012
                async with producer.transaction():
                    await producer.send(topic, b"fits")
                    await producer.flush()
                    await producer.send(topic, bytes(3000))
            assert isinstance(failed.value.__cause__, RecordTooLarge)
            async with producer.transaction():
                await producer.send(topic, b"good")

    run(scenario())
    assert values(servers, topic) == [b"good"]


def test_after_a_failure_no_more_records_are_accepted(servers: str, topic: str) -> None:
    async def scenario() -> None:
        async with Client(servers) as client, client.producer(transactional_id=topic) as producer:
            with pytest.raises(TransactionFailed):  # noqa: PT012
                async with producer.transaction():
                    with pytest.raises(RecordTooLarge):
                        await (await producer.send(topic, bytes(3000)))
                    await producer.send(topic, b"more")

    run(scenario())


def test_a_new_producer_fences_the_previous_one(servers: str, topic: str) -> None:
    async def scenario() -> None:
        async with (
            Client(servers) as client,
            client.producer(transactional_id=topic) as zombie,
            client.producer(transactional_id=topic) as successor,
        ):
            with pytest.raises(ProducerFenced):
                async with zombie.transaction():
                    await zombie.send(topic, b"zombie")
            with pytest.raises(ProducerFenced):
                async with zombie.transaction():
                    pass
            async with successor.transaction():
                await successor.send(topic, b"good")

    run(scenario())
    assert values(servers, topic) == [b"good"]


def test_a_producer_replaced_during_its_transaction_is_fenced_at_commit(servers: str, topic: str) -> None:
    async def scenario() -> None:
        async with Client(servers) as client, client.producer(transactional_id=topic) as zombie:
            with pytest.raises(ProducerFenced):  # noqa: PT012
                async with zombie.transaction():
                    await (await zombie.send(topic, b"zombie"))
                    async with client.producer(transactional_id=topic):
                        pass

    run(scenario())
    assert values(servers, topic) == []


def test_group_offsets_are_committed_with_the_transaction_or_not_at_all(servers: str, topic: str) -> None:
    at = TopicPartition(topic, 0)

    async def scenario() -> None:
        async with (
            Client(servers) as client,
            client.producer(transactional_id=topic) as producer,
            client.consumer(topic, group=topic, auto_offset_reset="earliest", auto_commit=False) as consumer,
        ):
            async with producer.transaction():
                await producer.send(topic, b"1")
            [record] = await consumer.poll(timeout_ms=10_000)
            with pytest.raises(Mistake):  # noqa: PT012
                async with producer.transaction():
                    await producer.send_offsets(consumer.progress())
                    raise Mistake
            assert await consumer.committed(at) == {}
            async with producer.transaction():
                await producer.send(topic, record.value)
                await producer.send_offsets(consumer.progress({at: 1}))
            assert (await consumer.committed(at))[at].offset == 1

    run(scenario())
    assert values(servers, topic) == [b"1", b"1"]


def test_offsets_can_be_sent_for_a_group_without_members(servers: str, topic: str) -> None:
    at = TopicPartition(topic, 0)

    async def scenario() -> dict[TopicPartition, CommittedOffset]:
        async with Client(servers) as client, client.producer(transactional_id=topic) as producer:
            async with producer.transaction():
                await producer.send_offsets(GroupProgress(topic, {at: Committed(7, metadata="note")}))
            return await client.admin.group_offsets(topic)

    assert run(scenario())[at] == CommittedOffset(7, -1, "note")


def test_sending_outside_of_a_transaction_or_nesting_is_refused(servers: str, topic: str) -> None:
    async def scenario() -> None:
        async with Client(servers) as client, client.producer(transactional_id=topic) as producer:
            with pytest.raises(ClientError, match="no open transaction"):
                await producer.send(topic, b"x")
            async with producer.transaction():
                with pytest.raises(ClientError, match="already open"):
                    async with producer.transaction():
                        pass
            async with client.producer() as plain:
                with pytest.raises(ClientError, match="transactional_id"):
                    async with plain.transaction():
                        pass

    run(scenario())


def test_closing_during_a_transaction_aborts_it(servers: str, topic: str) -> None:
    async def scenario() -> None:
        async with Client(servers) as client:
            producer = client.producer(transactional_id=topic)
            await producer.start()
            transaction = producer.transaction()
            await transaction.__aenter__()
            await (await producer.send(topic, b"x"))
            await producer.close()

    run(scenario())
    assert values(servers, topic) == []


def test_a_transactional_id_and_idempotence_are_required() -> None:
    for options in ({"transactional_id": ""}, {"transactional_id": "t", "idempotence": False}):
        with pytest.raises(ConfigError, match="transactional_id"):
            ProducerConfig(**options)  # type: ignore[arg-type]


def test_the_blocking_producer_has_transactions_too(servers: str, topic: str) -> None:
    with (
        ottla.Producer(servers, transactional_id=topic) as producer,
        ottla.Consumer(servers, topic, group=topic, auto_offset_reset="earliest", auto_commit=False) as consumer,
    ):
        with producer.transaction():
            producer.send(topic, b"1")
        with pytest.raises(Mistake), producer.transaction():  # noqa: PT012
            producer.send(topic, b"no")
            raise Mistake
        consumer.poll(timeout_ms=10_000)
        with producer.transaction():
            producer.send(topic, b"2")
            producer.send_offsets(consumer.progress({TopicPartition(topic, 0): 1}))
        assert consumer.committed(TopicPartition(topic, 0))[TopicPartition(topic, 0)].offset == 1
    assert values(servers, topic) == [b"1", b"2"]


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_an_open_transaction_survives_a_broker_restart(tmp_path: Path, how: str) -> None:
    quick = {"backoff_max_ms": 50, "metadata_refresh_retry_ms": 50, "metadata_refresh_retry_count": 0}

    async def scenario(server: Server) -> None:
        async with Client(server.address, **quick) as client, client.producer(transactional_id="t") as producer:  # type: ignore[arg-type]
            for number in range(3):
                async with producer.transaction():
                    await (await producer.send("t", b"%d a" % number))
                    await asyncio.get_running_loop().run_in_executor(None, server.restart, how)
                    await producer.send("t", b"%d b" % number)

    with Server(tmp_path / "data") as server:
        with RawClient(server.address) as client:
            making.create_topic(client, "t")
        run(scenario(server))
        assert values(server.address, "t") == [b"%d %s" % (n, c) for n in range(3) for c in (b"a", b"b")]
