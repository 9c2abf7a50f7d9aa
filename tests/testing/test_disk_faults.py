"""A disk that fails or is full, and what clients see of it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError
from kafka import KafkaConsumer

from ottla.broker.settings import Settings
from ottla.core.errors import ApiError
from ottla.storage.config import LogConfig
from ottla.testing import broker

from .clients import failure_of, producer, send, values

if TYPE_CHECKING:
    from ottla.testing import EphemeralBroker


def test_a_failed_fsync_takes_the_partition_offline() -> None:
    with broker(Settings(log=LogConfig(flush="ack"))) as failing:
        failing.produce("sound", "x")
        fault = failing.faults.fail_fsync(topic="t", times=1)
        with pytest.raises(ApiError, match="Input/output error"):
            failing.produce("t", "x")
        assert fault.struck == 1
        with pytest.raises(ApiError, match="offline"):
            failing.produce("t", "y")
        failing.produce("sound", "y")


def test_a_full_disk_refuses_records_until_there_is_room(ottla: EphemeralBroker) -> None:
    send(producer(ottla), "t", b"before")
    with ottla.faults.fill_disk(topic="t") as fault:
        failed = failure_of(producer(ottla, retries=0), "t", b"lost")
        assert failed.code() == KafkaError.KAFKA_STORAGE_ERROR
    assert fault.struck == 1
    send(producer(ottla), "t", b"after")
    assert values(ottla, "t") == [b"before", b"after"]


def test_a_retrying_producer_survives_a_full_disk(ottla: EphemeralBroker) -> None:
    fault = ottla.faults.fill_disk(topic="t", times=2)
    send(producer(ottla), "t", b"x")
    assert (fault.struck, values(ottla, "t")) == (2, [b"x"])


def test_a_commit_is_retried_when_the_disk_is_full(ottla: EphemeralBroker) -> None:
    ottla.produce("t", "x")
    settings = {"bootstrap_servers": ottla.bootstrap_servers, "auto_offset_reset": "earliest"}
    with closing(KafkaConsumer("t", group_id="readers", enable_auto_commit=False, **settings)) as reader:
        assert next(reader).value == b"x"
        fault = ottla.faults.fill_disk(topic="__consumer_offsets", times=1)
        reader.commit()
        assert fault.struck == 1
        ottla.wait_for_lag_zero("readers")


def test_another_topic_has_room(ottla: EphemeralBroker) -> None:
    fault = ottla.faults.fill_disk(topic="t")
    send(producer(ottla), "other", b"x")
    assert fault.struck == 0
