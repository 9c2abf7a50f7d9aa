"""Records that Apache Kafka 4.3 wrote, read and written again."""

from __future__ import annotations

import pytest

from ottla.core.errors import ProtocolError
from ottla.groups import records
from ottla.groups.consumer import records as consumer_records
from ottla.groups.consumer.current import Current, MemberState
from ottla.groups.consumer.formats import (
    CurrentKey,
    CurrentPartitions,
    CurrentValue,
    EpochKey,
    EpochValue,
    MemberKey,
    MemberValue,
    RegexKey,
    RegexValue,
    SubscriptionKey,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetPartitions,
    TargetValue,
)
from ottla.groups.consumer.records import Record
from ottla.groups.partitions import Partition

TOPIC_ID = bytes.fromhex("4150a8ebacdc4c7ea2e8404656280b01")
OTHER = "0009636f6e76657274656400056f74686572"
KAFKAS = {
    Record(EpochKey(group_id="converted"), EpochValue(epoch=2, metadata_hash=-1875271251758952310)): (
        "00030009636f6e766572746564",
        "000000000002010008e5f9b2bb6d67d08a",
    ),
    Record(
        MemberKey(group_id="converted", member_id="other"),
        MemberValue(
            client_id="größe",
            client_host="/127.0.0.1",
            subscribed_topic_names=("read",),
            subscribed_topic_regex="r.*",
            rebalance_timeout_ms=60_000,
            classic_member_metadata=None,
        ),
    ): (
        "0005" + OTHER,
        "00000000086772c3b6c39f650b2f3132372e302e302e3102057265616404722e2a0000ea600001000100",
    ),
    Record(
        TargetEpochKey(group_id="converted"),
        TargetEpochValue(assignment_epoch=2, assignment_timestamp=0x1A1E0063CCA),
    ): ("00060009636f6e766572746564", "000000000002010008000001a1e0063cca"),
    Record(
        TargetKey(group_id="converted", member_id="other"),
        TargetValue(topic_partitions=(TargetPartitions(topic_id=TOPIC_ID, partitions=(0,)),)),
    ): ("0007" + OTHER, "0000024150a8ebacdc4c7ea2e8404656280b0102000000000000"),
    Record(
        CurrentKey(group_id="converted", member_id="other"),
        CurrentValue(
            member_epoch=2,
            previous_member_epoch=0,
            state=0,
            assigned_partitions=(CurrentPartitions(topic_id=TOPIC_ID, partitions=(0,), assignment_epochs=(2,)),),
            partitions_pending_revocation=(),
        ),
    ): (
        "0008" + OTHER,
        "0000000000020000000000024150a8ebacdc4c7ea2e8404656280b01020000000001000502000000020100",
    ),
    Record(
        RegexKey(group_id="converted", regular_expression="r.*"),
        RegexValue(topics=("read",), version=26, timestamp=0x1A1E0063CB4),
    ): ("00100009636f6e7665727465640003722e2a", "0000020572656164000000000000001a000001a1e0063cb400"),
}


@pytest.mark.parametrize(("record", "kafkas"), KAFKAS.items(), ids=lambda value: type(value[0]).__name__)
def test_records_are_read_and_written_as_kafka_does(record: Record, kafkas: tuple[str, str]) -> None:
    key, value = map(bytes.fromhex, kafkas)
    decoded = records.decode_key(key)
    assert decoded == record.key
    assert consumer_records.decode_value(record.key, value, "log") == record.value
    assert consumer_records.encode(record) == (key, value)
    assert consumer_records.encode(Record(record.key, None)) == (key, None)


def test_topic_records_of_kafka_4_0_are_ignored() -> None:
    key = records.decode_key(bytes.fromhex("00040009636f6e766572746564"))
    assert key == SubscriptionKey(group_id="converted")
    assert consumer_records.decode_value(key, b"whatever", "log") is None


@pytest.mark.parametrize("value", ["", "0001", "0000", "000000000002010008e5"])
def test_broken_values_are_refused(value: str) -> None:
    with pytest.raises(ProtocolError):
        consumer_records.decode_value(EpochKey(group_id="g"), bytes.fromhex(value), "log")


def test_partitions_without_an_epoch_have_that_of_their_member() -> None:
    old = CurrentValue(
        member_epoch=7,
        previous_member_epoch=6,
        state=99,
        assigned_partitions=(CurrentPartitions(topic_id=TOPIC_ID, partitions=(0, 1)),),
        partitions_pending_revocation=(CurrentPartitions(topic_id=TOPIC_ID, partitions=(2,), assignment_epochs=None),),
    )
    current = Current.from_record(old)
    assert current.assigned == {Partition(TOPIC_ID, 0): 7, Partition(TOPIC_ID, 1): 7}
    assert current.revoked == {Partition(TOPIC_ID, 2): 7}
    assert current.state is MemberState.UNKNOWN
