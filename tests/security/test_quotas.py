"""Quotas: which one applies, throttle times, and unaffected other clients."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from tests.broker.making import batch, create_topic
from tests.broker.raw_client import HungUpError, RawClient

import ottla
from ottla.broker.security.quotas import Quotas
from ottla.broker.settings import Settings
from ottla.client.errors import BrokerError
from ottla.net.config import NetConfig
from ottla.net.rates import Bucket, Rates
from ottla.storage.catalog.entries import Quota, QuotaEntity, QuotaEntityType
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from collections.abc import Iterator

USER, CLIENT, IP = QuotaEntityType.USER, QuotaEntityType.CLIENT_ID, QuotaEntityType.IP
RATE = "producer_byte_rate"


# Throttle times


def test_a_burst_of_one_second_is_allowed() -> None:
    bucket = Bucket()
    assert bucket.add(100, rate=100, now_s=0) == 0
    assert bucket.add(50, rate=100, now_s=0) == 0.5
    assert bucket.add(0, rate=100, now_s=0.5) == 0
    assert bucket.add(100, rate=100, now_s=100) == 0


def test_a_client_within_its_rate_is_never_throttled() -> None:
    bucket = Bucket()
    assert all(bucket.add(10, rate=100, now_s=step / 10) == 0 for step in range(100))


def test_new_connections_by_address() -> None:
    rates = Rates(2)
    assert [rates.admits("a", 0) for _ in range(4)] == [True, True, False, False]
    assert rates.admits("b", 0)
    assert rates.admits("a", 0.5)
    assert not rates.admits("a", 0.5)
    rates.limit_of = {"c": 1.0}.get
    assert [rates.admits("c", 0) for _ in range(2)] == [True, False]
    assert rates.admits("a", 10)


# Precedence


def bound(*entities: dict[QuotaEntityType, str | None], user: str = "ann", client: str = "app") -> float | None:
    """The effective rate; each quota equals its index in the list."""
    quotas = {
        QuotaEntity.of(parts): Quota(QuotaEntity.of(parts), {RATE: float(number)})
        for number, parts in enumerate(entities, 1)
    }
    limit = Quotas(lambda: quotas).limit(user, client, RATE)
    return None if limit is None else limit.rate


def test_the_most_specific_quota_counts() -> None:
    least_first: list[dict[QuotaEntityType, str | None]] = [
        {CLIENT: None},
        {CLIENT: "app"},
        {USER: None},
        {USER: None, CLIENT: None},
        {USER: None, CLIENT: "app"},
        {USER: "ann"},
        {USER: "ann", CLIENT: None},
        {USER: "ann", CLIENT: "app"},
    ]
    for count in range(1, len(least_first) + 1):
        assert bound(*least_first[:count]) == count
    assert bound(*least_first, user="bob", client="other") == 4
    assert bound({USER: "bob"}) is None


def test_a_default_quota_is_per_client_and_an_explicit_one_is_shared() -> None:
    for_each = QuotaEntity.of({USER: None})
    quotas = {for_each: Quota(for_each, {RATE: 100.0})}
    known = Quotas(lambda: quotas)
    ann, bob = known.limit("ann", "a", RATE), known.limit("bob", "b", RATE)
    assert ann is not None
    assert bob is not None
    assert ann.bucket is not bob.bucket
    again = known.limit("ann", "other client", RATE)
    assert again is not None
    assert again.bucket is ann.bucket


# With a broker


@pytest.fixture
def broker() -> Iterator[ottla.Broker]:
    with ottla.Broker() as broker:
        yield broker


def produce(size: int) -> ProduceRequest:
    part = PartitionProduceData(index=0, records=batch(bytes(size)))
    return ProduceRequest(acks=1, timeout_ms=1000, topic_data=(TopicProduceData(name="t", partition_data=(part,)),))


def test_a_producer_over_quota_is_throttled_and_not_read_from(broker: ottla.Broker) -> None:
    with RawClient(broker.bootstrap_servers, client_id="fast") as fast, ottla.Admin(broker.bootstrap_servers) as admin:
        create_topic(fast, "t")
        admin.alter_quota({"client-id": "fast"}, {"producer_byte_rate": 100_000})
        began_s = time.monotonic()
        first = fast.ask(produce(120_000), 12)
        assert 150 <= first.throttle_time_ms <= 260
        assert fast.ask(produce(10), 12).responses
        assert time.monotonic() - began_s >= first.throttle_time_ms / 1000
        with RawClient(broker.bootstrap_servers, client_id="other") as other:
            assert other.ask(produce(200_000), 12).throttle_time_ms == 0
        admin.alter_quota({"client-id": "fast"}, {"producer_byte_rate": None})
        assert fast.ask(produce(200_000), 12).throttle_time_ms == 0


def test_a_consumer_over_quota_is_throttled(broker: ottla.Broker) -> None:
    with RawClient(broker.bootstrap_servers, client_id="fast") as fast, ottla.Admin(broker.bootstrap_servers) as admin:
        create_topic(fast, "t")
        fast.ask(produce(120_000), 12)
        admin.alter_quota({"client-id": None}, {"consumer_byte_rate": 100_000})
        part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        wanted = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic="t", partitions=(part,)),))
        assert 150 <= fast.ask(wanted, 12).throttle_time_ms <= 260


def test_request_percentage_quotas_throttle(broker: ottla.Broker) -> None:
    with RawClient(broker.bootstrap_servers, client_id="busy") as busy, ottla.Admin(broker.bootstrap_servers) as admin:
        create_topic(busy, "t")
        admin.alter_quota({"client-id": "busy"}, {"request_percentage": 0.0001})
        assert busy.ask(produce(100_000), 12).throttle_time_ms > 0


def test_quotas_are_listed_and_removed_when_empty(broker: ottla.Broker) -> None:
    with ottla.Admin(broker.bootstrap_servers) as admin:
        admin.alter_quota({"user": "ann", "client-id": None}, {"request_percentage": 50.0})
        assert admin.list_quotas() == [({"client-id": None, "user": "ann"}, {"request_percentage": 50.0})]
        admin.alter_quota({"user": "ann", "client-id": None}, {"request_percentage": None})
        assert admin.list_quotas() == []


@pytest.mark.parametrize(
    ("entity", "limits"),
    [
        ({"user": "ann"}, {"no_such_rate": 1.0}),
        ({"user": "ann"}, {"producer_byte_rate": -1.0}),
        ({"user": "ann"}, {"producer_byte_rate": float("nan")}),
        ({"user": "ann"}, {"connection_creation_rate": 1.0}),
        ({"ip": "1.2.3.4"}, {"producer_byte_rate": 1.0}),
        ({"ip": "1.2.3.4", "user": "ann"}, {"connection_creation_rate": 1.0}),
        ({"planet": "mars"}, {"producer_byte_rate": 1.0}),
        ({}, {"producer_byte_rate": 1.0}),
        ({"user": ""}, {"producer_byte_rate": 1.0}),
    ],
)
def test_an_invalid_quota_is_refused(
    broker: ottla.Broker, entity: dict[str, str | None], limits: dict[str, float | None]
) -> None:
    with ottla.Admin(broker.bootstrap_servers) as admin, pytest.raises(BrokerError):
        admin.alter_quota(entity, limits)


def is_let_in(broker: ottla.Broker) -> bool:
    with RawClient(broker.bootstrap_servers) as client:
        try:
            client.ask(produce(10), 12)
        except (HungUpError, OSError):
            return False
        return True


def test_an_address_over_its_connection_rate_is_refused() -> None:
    settings = Settings(net=NetConfig(port=0, max_connection_rate_per_address=3))
    with ottla.Broker(settings=settings) as broker:
        assert [is_let_in(broker) for _ in range(6)].count(False) > 0
        assert broker.broker.listener.counts["too many new connections"] > 0


def test_the_rate_of_an_address_can_be_set_while_the_broker_runs(broker: ottla.Broker) -> None:
    with ottla.Admin(broker.bootstrap_servers) as admin:
        assert all(is_let_in(broker) for _ in range(5))
        admin.alter_quota({"ip": "127.0.0.1"}, {"connection_creation_rate": 1.0})
        assert [is_let_in(broker) for _ in range(4)].count(False) >= 2
