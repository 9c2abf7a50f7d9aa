"""Idempotent producers: sequence numbers and producer ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.core.errors import ErrorCode, StorageError
from ottla.wire.apis import INIT_PRODUCER_ID
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

from .making import Topic, create_topic, fetch
from .producing import EACH_VERSION, numbered, produce, send
from .raw_client import RawClient

if TYPE_CHECKING:
    from pathlib import Path


@EACH_VERSION
def test_a_repeated_batch_is_answered_with_the_offset_of_the_original(
    client: RawClient, made: Topic, version: int
) -> None:
    offsets = [send(client, made, numbered(sequence, count=2), version).base_offset for sequence in range(0, 10, 2)]
    assert offsets == [0, 2, 4, 6, 8]
    for sequence in range(0, 10, 2):
        again = send(client, made, numbered(sequence, count=2), version)
        assert (again.error_code, again.base_offset) == (ErrorCode.NONE, sequence)
    assert fetch(client, made.name).high_watermark == 10


def test_a_gap_in_the_sequence_is_refused_and_can_be_filled(client: RawClient, made: Topic) -> None:
    assert send(client, made, numbered(0)).error_code == ErrorCode.NONE
    assert send(client, made, numbered(2)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(client, made, numbered(1)).error_code == ErrorCode.NONE
    assert send(client, made, numbered(2)).error_code == ErrorCode.NONE


def test_a_duplicate_older_than_the_remembered_batches_is_out_of_order(client: RawClient, made: Topic) -> None:
    for sequence in range(6):
        send(client, made, numbered(sequence))
    assert send(client, made, numbered(0)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_older_epoch_is_fenced_and_a_newer_one_starts_at_sequence_zero(client: RawClient, made: Topic) -> None:
    assert send(client, made, numbered(0, epoch=3)).error_code == ErrorCode.NONE
    assert send(client, made, numbered(1, epoch=2)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(client, made, numbered(1, epoch=4)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(client, made, numbered(0, epoch=4)).error_code == ErrorCode.NONE


def test_sequence_numbers_wrap_around_to_zero(client: RawClient, made: Topic) -> None:
    assert send(client, made, numbered(2**31 - 2, count=3)).error_code == ErrorCode.NONE
    assert send(client, made, numbered(1)).error_code == ErrorCode.NONE
    assert send(client, made, numbered(2**31 - 2, count=3)).base_offset == 0


def test_sequence_numbers_are_per_producer_and_partition(client: RawClient, made: Topic) -> None:
    for partition in range(3):
        for producer in (1, 2):
            result = produce(client, made, {partition: numbered(0, producer=producer)})[partition]
            assert result.error_code == ErrorCode.NONE
    assert fetch(client, made.name, partition=2).high_watermark == 2


@pytest.mark.parametrize("version", range(INIT_PRODUCER_ID.first, INIT_PRODUCER_ID.last + 1))
def test_each_producer_gets_its_own_id(client: RawClient, version: int) -> None:
    asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    answers = [client.ask(asked, version) for _ in range(3)]
    assert {answer.error_code for answer in answers} == {ErrorCode.NONE}
    assert {answer.producer_epoch for answer in answers} == {0}
    assert len({answer.producer_id for answer in answers}) == 3


def test_producer_ids_are_not_reused_after_a_restart(tmp_path: Path) -> None:
    asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    seen = set()
    for _ in range(3):
        with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
            seen |= {client.ask(asked).producer_id for _ in range(3)}
    assert len(seen) == 9


@pytest.mark.parametrize("version", range(INIT_PRODUCER_ID.first, INIT_PRODUCER_ID.last + 1))
def test_an_empty_transactional_id_is_an_invalid_request(client: RawClient, version: int) -> None:
    answer = client.ask(InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000), version)
    assert (answer.error_code, answer.producer_id) == (ErrorCode.INVALID_REQUEST, -1)


def test_no_producer_id_is_returned_when_the_disk_fails(
    client: RawClient, broker: ottla.Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> int:
        raise StorageError("no space left")

    monkeypatch.setattr(broker.broker.producer_ids, "next", refuse)
    answer = client.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000))
    assert (answer.error_code, answer.producer_id) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)


def test_old_batches_resent_after_a_restart_are_recognized_as_duplicates(tmp_path: Path) -> None:
    with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        made = Topic("t", create_topic(client, "t"))
        for sequence in range(3):
            assert send(client, made, numbered(sequence)).error_code == ErrorCode.NONE
    with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        # Their responses were lost. A client treats this one as success and continues; the original offsets are not
        # remembered.
        for sequence in (0, 1):
            assert send(client, made, numbered(sequence)).error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER
        assert send(client, made, numbered(2)).base_offset == 2
        assert send(client, made, numbered(3)).base_offset == 3
        assert send(client, made, numbered(5)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert fetch(client, "t").high_watermark == 4
