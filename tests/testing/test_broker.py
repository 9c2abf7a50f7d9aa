"""A broker for every test: fast, clean, and inspectable."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import ottla as ottla_package
from ottla import testing
from ottla.core.errors import ApiError, UnknownTopicOrPartition
from ottla.core.ids import TopicPartition

from .clients import consumer, poll, producer, send

if TYPE_CHECKING:
    from ottla.testing import EphemeralBroker


def values(broker: EphemeralBroker, topic: str) -> list[object]:
    return [record.value for record in broker.records(topic)]


@pytest.mark.parametrize("turn", range(3))
def test_every_test_finds_a_broker_without_topics_and_groups(ottla: EphemeralBroker, turn: int) -> None:
    assert ottla.topics() == []
    assert ottla.committed("readers") == {}
    ottla.produce("left-over", str(turn))
    with closing(consumer(ottla, "readers")) as reader:
        reader.subscribe(["left-over"])
        assert poll(reader) == str(turn).encode()
        reader.commit(asynchronous=False)
    assert ottla.committed("readers") == {TopicPartition("left-over", 0): 1}


def test_a_client_left_over_from_one_broker_never_reaches_the_next() -> None:
    with testing.broker() as first:
        left_over = producer(first)
        send(left_over, "t", b"x")
        address = first.bootstrap_servers
    with testing.broker() as second:
        assert second.bootstrap_servers != address
        left_over.produce("t", b"late")
        left_over.flush(0.3)
        assert second.topics() == []


def test_nothing_is_left_behind() -> None:
    before = set(threading.enumerate())
    with testing.broker() as broker:
        folder = broker.broker.data_dir.path
        broker.produce("t", "x")
        assert folder.is_dir()
    assert not folder.exists()
    assert set(threading.enumerate()) <= before


def test_use_outside_of_its_block_is_an_error() -> None:
    broker = testing.broker()
    with pytest.raises(RuntimeError, match="not running"):
        _ = broker.bootstrap_servers
    with broker, pytest.raises(RuntimeError, match="already"):
        broker.start()


def test_the_broker_of_the_session_is_one(ottla_session: EphemeralBroker, request: pytest.FixtureRequest) -> None:
    assert request.getfixturevalue("ottla_session") is ottla_session


def test_what_is_produced_is_read_back_by_partition_and_offset(ottla: EphemeralBroker) -> None:
    ottla.create_topic("t", partitions=2, configs={"retention.ms": "1000000"})
    assert ottla.produce("t", "a", b"b", partition=1, key="k", headers=(("h", b"1"),)) == 0
    assert ottla.produce("t", None, partition=1) == 2
    ottla.produce("t", "first")
    assert values(ottla, "t") == [b"first", b"a", b"b", None]
    record = ottla.records("t")[1]
    assert (record.key, record.headers) == (b"k", (("h", b"1"),))


def test_more_is_read_back_than_fits_one_fetch(ottla: EphemeralBroker) -> None:
    large = bytes(900_000)
    for _ in range(11):
        ottla.produce("t", large)
    assert len(ottla.records("t")) == 11


def test_missing_topics_and_partitions_are_errors(ottla: EphemeralBroker) -> None:
    ottla.create_topic("there")
    with pytest.raises(UnknownTopicOrPartition, match="there"):
        ottla.records("missing")
    with pytest.raises(ApiError):
        ottla.produce("there", "x", partition=7)
    with pytest.raises(ValueError, match="no values to produce"):
        ottla.produce("there")
    with pytest.raises(ApiError):
        ottla.create_topic("not a name")


def test_records_are_waited_for(ottla: EphemeralBroker) -> None:
    client = producer(ottla)
    client.produce("t", b"x")
    client.poll(0)
    assert [record.value for record in ottla.wait_for_records("t")] == [b"x"]
    with pytest.raises(TimeoutError, match=r"after 0.01 s topic 't' has 1 of 2 records"):
        ottla.wait_for_records("t", 2, timeout_s=0.01)


def test_a_group_is_waited_for_until_it_is_stable(ottla: EphemeralBroker) -> None:
    ottla.create_topic("t", partitions=2)
    with pytest.raises(TimeoutError, match=r"no group 'readers'"):
        ottla.wait_for_group("readers", timeout_s=0.01)
    with ottla_package.Consumer(ottla.bootstrap_servers, "t", group="readers") as reader:
        reader.poll(timeout_ms=100)
        ottla.wait_for_group("readers")
        with pytest.raises(TimeoutError, match=r"'readers' is Stable with 1 members .*, expected Stable with 2"):
            ottla.wait_for_group("readers", 2, timeout_s=0.01)


def test_lag_is_waited_for_until_it_is_gone(ottla: EphemeralBroker) -> None:
    ottla.produce("t", "a", "b")
    with pytest.raises(TimeoutError, match="has no committed offsets"):
        ottla.wait_for_lag_zero("readers", timeout_s=0.01)
    with pytest.raises(TimeoutError, match=r"'readers' is behind by \{'t-0': 2\}"):
        ottla.wait_for_lag_zero("readers", "t", timeout_s=0.01)
    with closing(consumer(ottla, "readers")) as reader:
        reader.subscribe(["t"])
        poll(reader)
        reader.commit(asynchronous=False)
        assert ottla.lag("readers") == {TopicPartition("t", 0): 1}
        poll(reader)
        reader.commit(asynchronous=False)
        ottla.wait_for_lag_zero("readers")


def test_a_topic_that_no_client_could_create_is_refused(ottla: EphemeralBroker) -> None:
    with pytest.raises(ApiError, match="did you mean retention"):
        ottla.create_topic("orders", configs={"retention.m": "1"})
    with pytest.raises(ApiError, match="partitions"):
        ottla.create_topic("orders", partitions=0)
    assert ottla.topics() == []
