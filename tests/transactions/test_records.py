"""The records are Kafka's, byte for byte."""

from __future__ import annotations

import pytest

from ottla.core.errors import ProtocolError
from ottla.core.ids import TopicPartition
from ottla.transactions.records import decode_key, decode_value, encode
from ottla.transactions.states import State
from ottla.transactions.transaction import Transaction

ONGOING = Transaction(
    producer_id=7,
    epoch=3,
    timeout_ms=60_000,
    state=State.ONGOING,
    partitions=frozenset({TopicPartition("b", 1), TopicPartition("b", 0), TopicPartition("a", 2)}),
    started_ms=1_700_000_000_000,
    updated_ms=1_700_000_000_001,
    client_version=2,
)
KEY = bytes.fromhex("0000 0001 74")
VALUE = bytes.fromhex(
    "0001 0000000000000007 0003 0000ea60 01"
    "03 0261 02 00000002 00 0262 03 00000000 00000001 00"
    "0000018bcfe56801 0000018bcfe56800"
    "01 02 02 0002"
)
OLD_VALUE = bytes.fromhex(
    "0000 0000000000000007 0003 0000ea60 05"
    "00000001 0001 61 00000001 00000002"
    "0000018bcfe56801 0000018bcfe56800"
)  # fmt: skip


def test_a_transaction_is_written_as_kafka_writes_it() -> None:
    assert encode("t", ONGOING) == (KEY, VALUE)


def test_a_written_transaction_is_read_back() -> None:
    assert decode_key(KEY) == "t"
    assert decode_value(VALUE) == ONGOING


def test_the_older_form_is_read_too() -> None:
    old = decode_value(OLD_VALUE)
    assert (old.producer_id, old.epoch, old.state) == (7, 3, State.COMPLETE_ABORT)
    assert old.partitions == {TopicPartition("a", 2)}
    assert (old.previous_producer_id, old.next_producer_id, old.client_version) == (-1, -1, 0)


def test_ids_of_before_and_after_survive() -> None:
    moved = Transaction(producer_id=7, epoch=0, timeout_ms=1, updated_ms=2, previous_producer_id=5, next_producer_id=9)
    value = encode("t", moved).value
    assert value is not None
    assert decode_value(value) == moved


def test_an_expired_id_is_a_tombstone() -> None:
    assert encode("t", None) == (KEY, None)


def test_a_key_of_an_unknown_version_is_ignored() -> None:
    assert decode_key(b"\x00\x01x") is None


@pytest.mark.parametrize("broken", [b"", b"\x00", b"\x00\x02", VALUE[:9], VALUE[:16] + b"\x09" + VALUE[17:]])
def test_a_malformed_value_is_reported(broken: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_value(broken)
